//go:build netbsd || openbsd

package vfs

import (
	"os"
	"syscall"
)

// freeOn is not offered here.
func freeOn(*os.File) (uint64, error) { return 0, syscall.ENOTSUP }
