package weaviate

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Address says where a Weaviate cluster is, and how an index is made in it.
type Address struct {
	scheme string   // http or https
	nodes  []string // HOST:PORT
	key    string   // of the API; empty for none
	prefix string   // of the names of collections
	// shards and replicas are those of a new collection.
	shards, replicas int
}

const (
	defaultPort = "8080"
	maxShards   = 1024
)

var collectionPrefix = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// ParseAddress parses weaviate://[:KEY@]HOST[:PORT] with the parameters nodes
// (further ones, separated by commas), scheme, prefix, shards and replicas. Its
// errors never quote the key.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	// A sign in a key can end the host, and what follows is then parsed as something
	// else.
	if err != nil || u.Scheme != "weaviate" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" ||
		strings.Contains(u.RawQuery, "@") {
		return Address{}, errors.New("it is not like weaviate://HOST:PORT?nodes=HOST:PORT,HOST:PORT&shards=N&replicas=N")
	}
	a := Address{scheme: "http", prefix: "Ibid", nodes: []string{withPort(u.Host)}, shards: 1, replicas: 1}
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
	case "prefix":
		if !collectionPrefix.MatchString(value) {
			return fmt.Errorf("the prefix %q is not a capital letter followed by letters and digits", value)
		}
		a.prefix = value
	case "shards", "replicas":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxShards {
			return fmt.Errorf("%s=%s is not a number from 1 to %d", name, value, maxShards)
		}
		if name == "shards" {
			a.shards = n
		} else {
			a.replicas = n
		}
	default:
		return fmt.Errorf("there is no parameter %q: there are nodes, scheme, prefix, shards and replicas", name)
	}
	return nil
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
}

// WithKey returns the address with a key of the API, unless the key is empty or
// the address has one.
func (a Address) WithKey(key string) Address {
	a.key = cmp.Or(a.key, key)
	a.nodes = slices.Clone(a.nodes)
	return a
}

// String returns the address without its key.
func (a Address) String() string { return "weaviate://" + strings.Join(a.nodes, ",") }
