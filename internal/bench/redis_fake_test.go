package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/felixd/felixd/internal/bench/machine"
)

// redisVariable makes this test program a redis-server, "1", or one that refuses its settings, "broken".
const redisVariable = "FELIX_TEST_REDIS"

// startFakeRedis starts this test program as a redis-server.
func startFakeRedis(t *testing.T, durable bool) *Redis {
	t.Helper()
	t.Setenv(redisVariable, "1")
	r, err := StartRedis(newContext(t), RedisPlan{Program: os.Args[0], Durable: durable, Folder: t.TempDir(), CPU: machine.Any})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// beRedis serves until it is told to end.
func beRedis(config string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	text, err := os.ReadFile(config)
	if err != nil || os.Getenv(redisVariable) == "broken" {
		fmt.Println("*** FATAL CONFIG FILE ERROR ***\nBad directive", err)
		return 1
	}
	settings := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		settings[name] = strings.Trim(value, `"`)
	}
	if err := os.Chdir(settings["dir"]); err != nil { // as the real one does before it reads anything else
		fmt.Println(err)
		return 1
	}
	cert, err := tls.LoadX509KeyPair(settings["tls-cert-file"], settings["tls-key-file"])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l, err := tls.Listen("tcp", "127.0.0.1:"+settings["tls-port"], &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go serveRedis(l, "mode:"+settings["appendfsync"])
	<-ctx.Done()
	return 0
}

func serveRedis(l net.Listener, mode string) {
	store := &fakeStore{mode: mode, values: make(map[string]string)}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go store.serve(conn)
	}
}

// fakeStore is the least that callers ask of a redis-server.
type fakeStore struct {
	mode   string
	mu     sync.Mutex
	values map[string]string
}

func (s *fakeStore) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.answer(args)); err != nil {
			return
		}
	}
}

func (s *fakeStore) answer(args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	switch {
	case args[0] == "SET" && len(args) == 3:
		s.values[args[1]] = args[2]
		return "+OK\r\n"
	case args[0] == "GET" && len(args) == 2:
		value, ok := s.values[args[1]]
		if !ok {
			return "$-1\r\n"
		}
		return bulk(value)
	case args[0] == "INFO" && len(args) == 2 && args[1] == "server":
		return bulk("# Server\r\nredis_version:7.0-fake\r\nredis_mode:" + s.mode + "\r\n")
	case args[0] == "INFO" && len(args) == 2 && args[1] == "cpu":
		return bulk("# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\nused_cpu_sys_children:9\r\n")
	}
	return fmt.Sprintf("-ERR unknown command %q\r\n", args)
}

// readCommand reads what appendCommand wrote.
func readCommand(r *bufio.Reader) ([]string, error) {
	count, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, count)
	for i := range args {
		n, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:n])
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind || !strings.HasSuffix(line, "\r\n") {
		return 0, fmt.Errorf("%q is no length", line)
	}
	return strconv.Atoi(line[1 : len(line)-2])
}
