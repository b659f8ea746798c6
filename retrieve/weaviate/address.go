package weaviate

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An Address is the address of a Weaviate cluster, with parameters for new collections.
type Address struct {
	scheme string   // http or https
	nodes  []string // HOST:PORT
	key    string   // of the API; may be empty
	// shards and replicas are parameters of new collections.
	shards, replicas int
}

const defaultPort = "8080"

// ParseAddress parses weaviate://[:KEY@]HOST[:PORT] with the parameters nodes (further nodes,
// separated by commas), scheme, shards and replicas. Its errors never quote the key.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	// A special character in a key can end the host, and the rest is then parsed as something else.
	if err != nil || u.Scheme != "weaviate" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" ||
		strings.Contains(u.RawQuery, "@") {
		return Address{}, errors.New("it does not have the form weaviate://HOST:PORT?nodes=HOST:PORT,HOST:PORT&shards=N&replicas=N")
	}
	a := Address{scheme: "http", nodes: []string{withPort(u.Host)}, shards: 1, replicas: 1}
	if u.User != nil {
		password, _ := u.User.Password()
		a.key = cmp.Or(password, u.User.Username())
	}
	for name, values := range u.Query() {
		if err := a.set(name, values[len(values)-1]); err != nil {
			return Address{}, err
		}
	}
	return a, nil
}

func (a *Address) set(name, value string) error {
	switch name {
	case "nodes":
		for node := range strings.SplitSeq(value, ",") {
			if host, _, err := net.SplitHostPort(withPort(node)); err != nil || host == "" {
				return fmt.Errorf("the node %q is not HOST:PORT", node)
			}
			a.nodes = append(a.nodes, withPort(node))
		}
	case "scheme":
		if value != "http" && value != "https" {
			return fmt.Errorf("the scheme %q is neither http nor https", value)
		}
		a.scheme = value
	case "shards", "replicas":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%s=%s is not a positive number", name, value)
		}
		if name == "shards" {
			a.shards = n
		} else {
			a.replicas = n
		}
	default:
		return fmt.Errorf("the parameter %q is unknown: use nodes, scheme, shards or replicas", name)
	}
	return nil
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
}

// WithKey returns the address with an API key, unless key is empty or the address already has one.
func (a Address) WithKey(key string) Address {
	a.key = cmp.Or(a.key, key)
	return a
}

// String returns the address without its key.
func (a Address) String() string { return "weaviate://" + strings.Join(a.nodes, ",") }
