package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// devFile is where a development broker leaves its settings, seen from the folder it was started in.
const devFile = "felix-data/dev.json"

// contextFile is what the file holds. Unknown members are ignored: a newer broker may write more.
type contextFile struct {
	ClientAddr   string `json:"client_addr"`
	ControlPlane string `json:"control_plane"`
	TenantID     string `json:"tenant_id"`
	Namespace    string `json:"namespace"`
	ClientToken  string `json:"client_token"`
	AdminToken   string `json:"admin_token"`
	CAFile       string `json:"ca_file"`
}

// settings are flags, variables and the context file put together. Empty means not given anywhere.
type settings struct {
	addrs             []string
	tenant, namespace string
	token             string
	caFile            string
	serverName        string
	controlPlane      string
	controlPlaneToken string
	controlPlaneCA    string

	noDevFile bool // no context file was named, and the usual place has none
}

// settings reads flag before variable before file. The error is a *usageError.
func (a *app) settings() (*settings, error) {
	file, found, err := a.readContext()
	if err != nil {
		return nil, err
	}
	g := &a.flags
	pick := func(flag, variable, fromFile string) string {
		if flag != "" {
			return flag
		}
		if v := a.sys.getenv(variable); v != "" {
			return v
		}
		return fromFile
	}
	s := &settings{
		addrs:        splitList(pick(g.addr, envAddr, file.ClientAddr)),
		tenant:       pick(g.tenant, envTenant, file.TenantID),
		namespace:    pick(g.namespace, envNamespace, file.Namespace),
		caFile:       pick(g.caFile, envCAFile, file.CAFile),
		serverName:   pick(g.serverName, envServerName, ""),
		controlPlane: strings.TrimRight(pick(g.controlPlane, envControlPlane, file.ControlPlane), "/"),
		noDevFile:    !found,
	}
	s.controlPlaneCA = pick(g.controlPlaneCA, envControlPlaneCA, s.caFile)
	if s.namespace == "" {
		s.namespace = "default"
	}
	if s.serverName == "" {
		s.serverName = serverNameOf(s.addrs)
	}
	if s.token, err = a.secret(g.token, g.tokenFile, envToken, envTokenFile, file.ClientToken); err != nil {
		return nil, err
	}
	s.controlPlaneToken, err = a.secret(g.controlPlaneToken, g.controlPlaneTokenFile, envControlPlaneToken, envControlPlaneTokenFile, file.AdminToken)
	return s, err
}

// readContext reads the context file. found is false when none was named and the usual place has none.
func (a *app) readContext() (file contextFile, found bool, err error) {
	path := a.flags.contextFile
	if path == "" {
		path = a.sys.getenv(envContextFile)
	}
	named := path != ""
	if !named {
		path = filepath.Join(a.sys.workDir, filepath.FromSlash(devFile))
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return contextFile{}, false, nil
	case err != nil:
		return contextFile{}, false, usagef("read context file: %v", err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return contextFile{}, false, usagef("read context file %s: %v", path, err)
	}
	if file.CAFile != "" && !filepath.IsAbs(file.CAFile) {
		// Relative to the folder the broker was started in, which is the one above felix-data.
		file.CAFile = filepath.Join(filepath.Dir(filepath.Dir(path)), file.CAFile)
	}
	return file, true, nil
}

// secret takes a token from flag, file of a flag, variable, file of a variable, or the context, in this order.
func (a *app) secret(flag, flagFile, variable, variableFile, fromContext string) (string, error) {
	switch {
	case flag != "" && flagFile != "":
		return "", usagef("a token and a token file are given; use one of them")
	case flag != "":
		return flag, nil
	case flagFile != "":
		return readToken(flagFile)
	case a.sys.getenv(variable) != "":
		return a.sys.getenv(variable), nil
	case a.sys.getenv(variableFile) != "":
		return readToken(a.sys.getenv(variableFile))
	}
	return fromContext, nil
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", usagef("read token: %v", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// serverNameOf is the host of the first broker when it is a name. A bare IP address is not what certificates usually carry.
func serverNameOf(addrs []string) string {
	if len(addrs) > 0 {
		host, _, err := net.SplitHostPort(addrs[0])
		if _, notIP := netip.ParseAddr(host); err == nil && notIP != nil && host != "" {
			return host
		}
	}
	return "localhost"
}

// missing says which setting nobody gave, and where it could come from.
func (s *settings) missing(what, flag, variable string) error {
	if s.noDevFile {
		return usagef("no %s here: start `go run ./cmd/felixd dev` in this folder or pass --context-file (%s is needed: --%s or %s)",
			devFile, what, flag, variable)
	}
	return usagef("%s is not set: add it to the context file, or give --%s or %s", what, flag, variable)
}
