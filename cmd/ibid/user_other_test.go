//go:build !unix

package main

import "syscall"

func asUser(uint32) *syscall.SysProcAttr { return nil }
