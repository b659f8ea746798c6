// Package baselines measures Ibid's searches beside those of other engines. It
// is a module of its own, so that who builds Ibid does not download them.
package baselines
