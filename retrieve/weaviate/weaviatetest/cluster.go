// Package weaviatetest starts real Weaviate servers for tests: one node, or
// several that are one cluster, on free ports of the loopback interface and in
// folders of their own.
package weaviatetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Env names the environment variable that holds the path of the server's binary.
const Env = "IBID_TEST_WEAVIATE"

// A Cluster is some nodes that are one Weaviate.
type Cluster struct {
	Nodes []*Node
}

// A Node is one server process.
type Node struct {
	// HTTP and GRPC are the addresses, host and port, that it serves at.
	HTTP, GRPC string

	t      testing.TB
	name   string
	dir    string
	server string
	args   []string
	env    []string
	again  string // whom to join when it starts again
	cmd    *exec.Cmd
	ended  chan struct{}
}

// Start starts a cluster of so many nodes, waits until it is ready and stops it
// when the test ends. Without a server's binary the test is skipped.
func Start(t testing.TB, nodes int) *Cluster {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		t.Skipf("%s is not set: '.ci/weaviate DIR' builds the server and prints what to set", Env)
	}
	if _, err := os.Stat(server); err != nil {
		t.Fatalf("%s: %v", Env, err)
	}
	c := &Cluster{}
	// Weaviate derives ports from others, so each node has eight in a row.
	const span = 8
	ports := freePorts(t, span*nodes)
	var names, join []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("node%d", i+1))
		join = append(join, fmt.Sprintf("127.0.0.1:%d", ports+span*i))
	}
	for i := range nodes {
		at := ports + span*i
		gossip, data, raft, rpc, grpc, http, profile := at, at+1, at+2, at+3, at+4, at+5, at+6
		n := &Node{
			t: t, name: names[i], dir: t.TempDir(), server: server,
			HTTP: fmt.Sprintf("127.0.0.1:%d", http), GRPC: fmt.Sprintf("127.0.0.1:%d", grpc),
			args: []string{"--host", "127.0.0.1", "--port", fmt.Sprint(http), "--scheme", "http"},
		}
		var raftJoin []string
		for j := range nodes {
			raftJoin = append(raftJoin, fmt.Sprintf("%s:%d", names[j], ports+span*j+2))
		}
		n.env = append(os.Environ(),
			"PERSISTENCE_DATA_PATH="+filepath.Join(n.dir, "data"),
			"CLUSTER_HOSTNAME="+n.name, "CLUSTER_IN_LOCALHOST=true",
			"CLUSTER_ADVERTISE_ADDR=127.0.0.1", "CLUSTER_BIND_ADDR=127.0.0.1",
			fmt.Sprintf("CLUSTER_GOSSIP_BIND_PORT=%d", gossip), fmt.Sprintf("CLUSTER_DATA_BIND_PORT=%d", data),
			fmt.Sprintf("RAFT_PORT=%d", raft), fmt.Sprintf("RAFT_INTERNAL_RPC_PORT=%d", rpc),
			"RAFT_JOIN="+strings.Join(raftJoin, ","), fmt.Sprintf("RAFT_BOOTSTRAP_EXPECT=%d", nodes),
			"RAFT_BOOTSTRAP_TIMEOUT=120", "RAFT_TIMEOUTS_MULTIPLIER=1",
			fmt.Sprintf("GRPC_PORT=%d", grpc), fmt.Sprintf("GO_PROFILING_PORT=%d", profile), "GO_PROFILING_DISABLE=true",
			"AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true", "DEFAULT_VECTORIZER_MODULE=none", "ENABLE_MODULES=",
			"DISABLE_TELEMETRY=true", "LOG_LEVEL=warning", "GOMEMLIMIT=3GiB", "DISK_USE_READONLY_PERCENTAGE=99", "DISK_USE_WARNING_PERCENTAGE=98",
		)
		if i > 0 {
			n.env = append(n.env, "CLUSTER_JOIN="+join[0])
		} else if nodes > 1 {
			n.again = "CLUSTER_JOIN=" + join[1]
		}
		c.Nodes = append(c.Nodes, n)
	}
	for i, n := range c.Nodes {
		n.Start()
		if i == 0 && nodes > 1 {
			// One whose first greeting is refused gives up for good.
			n.await("the gossip port of "+n.name, func() bool { return dialled(join[0]) })
		}
	}
	for _, n := range c.Nodes {
		n.Ready()
	}
	return c
}

// URL is that of the store on the first node, with the query's parameters.
func (c *Cluster) URL(query url.Values) string { return c.Nodes[0].URL(query) }

// URL is that of the store on this node.
func (n *Node) URL(query url.Values) string {
	q := url.Values{"grpc": {n.GRPC}}
	for k, v := range query {
		q[k] = v
	}
	return (&url.URL{Scheme: "weaviate", Host: n.HTTP, RawQuery: q.Encode()}).String()
}

// Dir is the folder of the node's data.
func (n *Node) Dir() string { return n.dir }

// Pid is that of the running node.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Name is what the cluster calls the node.
func (n *Node) Name() string { return n.name }

// Start starts the node, again after [Node.Kill].
func (n *Node) Start() {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.cmd != nil && n.again != "" {
		n.env, n.again = append(n.env, n.again), ""
	}
	n.cmd = exec.Command(n.server, n.args...)
	n.cmd.Env, n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = n.env, n.dir, log, log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	n.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // how it ended stands in its log
		_ = log.Close()
		close(ended)
	}(n.cmd)
	n.t.Cleanup(n.Kill)
}

// Kill ends the node at once, as a loss of power would.
func (n *Node) Kill() {
	if err := n.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.t.Errorf("kill %s: %v", n.name, err)
	}
	<-n.ended
}

// Ready waits until the node says that it is.
func (n *Node) Ready() {
	n.t.Helper()
	n.await("node "+n.name, func() bool { return ready(n.HTTP) && dialled(n.GRPC) })
}

func (n *Node) await(what string, there func() bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	for !there() {
		select {
		case <-n.ended:
			n.t.Fatalf("%s ended before it was ready:\n%s", n.name, n.Log())
		case <-ctx.Done():
			n.t.Fatalf("%s is not ready after two minutes:\n%s", what, n.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Log is the end of what the node has written.
func (n *Node) Log() string {
	log, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4000):])
}

func dialled(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// freePorts finds the first of so many ports in a row that are free. They lie below
// those that systems give to whoever asks for any, so that nobody is given one of
// them before it is used.
func freePorts(t testing.TB, n int) int {
	t.Helper()
next:
	for range 1000 {
		first := 10_000 + rand.IntN(20_000)
		for p := first; p < first+n; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
			if err != nil {
				continue next
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return first
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}
