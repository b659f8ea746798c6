// Package baselines compares Ibid's searches with those of other engines. It is
// a separate module, so that building Ibid does not download them.
package baselines
