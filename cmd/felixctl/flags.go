package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// globalFlags are the flags every command has. What they mean together with variables and the context file is in
// settings.go.
type globalFlags struct {
	contextFile string

	addr       string
	tenant     string
	namespace  string
	token      string
	tokenFile  string
	caFile     string
	serverName string
	alpn       bool

	controlPlane          string
	controlPlaneToken     string
	controlPlaneTokenFile string
	controlPlaneCA        string

	json  bool
	quiet bool
}

// Variables, each the second place to look for a setting.
const (
	envContextFile           = "FELIX_CONTEXT_FILE"
	envAddr                  = "FELIX_BROKERS"
	envTenant                = "FELIX_AUTH_TENANT"
	envNamespace             = "FELIX_NAMESPACE"
	envToken                 = "FELIX_AUTH_TOKEN"
	envTokenFile             = "FELIX_AUTH_TOKEN_FILE"
	envCAFile                = "FELIX_CA_FILE"
	envServerName            = "FELIX_SERVER_NAME"
	envControlPlane          = "FELIX_CONTROLPLANE_URL"
	envControlPlaneToken     = "FELIX_CONTROLPLANE_TOKEN"
	envControlPlaneTokenFile = "FELIX_CONTROLPLANE_TOKEN_FILE"
	envControlPlaneCA        = "FELIX_CONTROLPLANE_CA"
)

func (g *globalFlags) register(set *pflag.FlagSet) {
	text := func(target *string, name, short, variable, usage string) {
		set.StringVarP(target, name, short, "", usage+" ["+variable+"]")
	}
	text(&g.contextFile, "context-file", "", envContextFile, "file with the settings below; default ./felix-data/dev.json")
	text(&g.addr, "addr", "", envAddr, "brokers as host:port, comma-separated")
	text(&g.tenant, "tenant", "", envTenant, "tenant")
	text(&g.namespace, "namespace", "n", envNamespace, "namespace; default \"default\"")
	text(&g.token, "token", "", envToken, "token for the broker")
	text(&g.tokenFile, "token-file", "", envTokenFile, "file with the token for the broker")
	text(&g.caFile, "ca-file", "", envCAFile, "PEM file with the authorities to trust")
	text(&g.serverName, "server-name", "", envServerName, "name the broker's certificate must carry; default the host of the first broker, or localhost")
	text(&g.controlPlane, "controlplane-url", "", envControlPlane, "https address of the control plane")
	text(&g.controlPlaneToken, "controlplane-token", "", envControlPlaneToken, "token for the control plane")
	text(&g.controlPlaneTokenFile, "controlplane-token-file", "", envControlPlaneTokenFile, "file with the token for the control plane")
	text(&g.controlPlaneCA, "controlplane-ca-file", "", envControlPlaneCA, "authorities to trust for the control plane; default as --ca-file")
	set.BoolVar(&g.alpn, "alpn", false, "offer the protocol felix/1 in the handshake")
	set.BoolVar(&g.json, "json", false, "JSON output, also on a terminal; errors as JSON too")
	set.BoolVarP(&g.quiet, "quiet", "q", false, "no notes and no progress on standard error")
}

// splitList splits a comma-separated list and drops empty parts.
func splitList(s string) []string {
	var parts []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
