package weaviate

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// What an address says when it says nothing.
const (
	defaultPort   = "8080"
	defaultGRPC   = "50051"
	defaultPrefix = "Ibid"
	maxShards     = 1024
)

// An address is a store's URL, read.
type address struct {
	scheme string   // http or https
	hosts  []string // host:port of each node that is asked over HTTP, the first one first
	grpc   []string // the same for gRPC
	key    string
	prefix string // of the names of classes
	// shards and replicas are what the schema must have; 0 takes what there is,
	// or one.
	shards, replicas int
}

var classPrefix = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// parseAddress reads weaviate://[:KEY@]HOST[:PORT][?grpc=…&nodes=…&scheme=…&prefix=…&shards=…&replicas=…].
// No error of its holds the key.
func parseAddress(text string) (a address, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return a, errors.New("the URL of the store cannot be read: it is weaviate://HOST:PORT?grpc=HOST:PORT")
	}
	// Behind a sign in a key that ends the host the rest of it stands anywhere.
	if u.Scheme != "weaviate" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" || strings.Contains(u.RawQuery, "@") {
		return a, errors.New("the URL of the store is not weaviate://HOST:PORT?grpc=HOST:PORT: write the signs / ? # @ of a key as %2F %3F %23 %40")
	}
	a = address{scheme: "http", prefix: defaultPrefix}
	if u.User != nil {
		a.key = u.User.Username()
		if password, set := u.User.Password(); set {
			a.key = password
		}
	}
	port := func(host, port string) string {
		if _, _, err := net.SplitHostPort(host); err == nil {
			return host
		}
		return net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	grpc := ""
	var nodes []string
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "grpc":
			grpc = value
		case "nodes":
			nodes = strings.Split(value, ",")
		case "scheme":
			if value != "http" && value != "https" {
				return a, fmt.Errorf("the scheme %q in the URL of the store is not http or https", value)
			}
			a.scheme = value
		case "prefix":
			if !classPrefix.MatchString(value) {
				return a, fmt.Errorf("the prefix %q in the URL of the store does not begin with a capital letter, or holds more than letters and digits", value)
			}
			a.prefix = value
		case "shards", "replicas":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > maxShards {
				return a, fmt.Errorf("%s=%s in the URL of the store is not a number from 1 to %d", name, value, maxShards)
			}
			if name == "shards" {
				a.shards = n
			} else {
				a.replicas = n
			}
		default:
			return a, fmt.Errorf("the URL of the store has no parameter %q: there are grpc, nodes, scheme, prefix, shards and replicas", name)
		}
	}
	if grpc == "" {
		grpc = net.JoinHostPort(u.Hostname(), defaultGRPC)
	}
	a.hosts, a.grpc = []string{port(u.Host, defaultPort)}, []string{port(grpc, defaultGRPC)}
	// A further node is HOST, HOST:PORT or HOST:PORT/GRPCPORT.
	for _, node := range nodes {
		web, rpc, ok := strings.Cut(node, "/")
		web = port(web, defaultPort)
		host, _, err := net.SplitHostPort(web)
		if err != nil || host == "" {
			return a, fmt.Errorf("the node %q in the URL of the store is not HOST:PORT/GRPCPORT", node)
		}
		if !ok {
			rpc = defaultGRPC
		}
		a.hosts, a.grpc = append(a.hosts, web), append(a.grpc, net.JoinHostPort(host, rpc))
	}
	return a, nil
}
