package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// faultSocket is the fault door's name in the data directory.
	faultSocket = "fault.sock"
	// faultCradle is the folder in which the socket is made: nobody else can look into it.
	faultCradle = ".fault"
)

// startFaultDoor opens the fault door, if that was asked for.
func (d *daemon) startFaultDoor(ctx context.Context) error {
	if !d.config.FaultDoor {
		return nil
	}
	listener, err := listenFaults(d.data)
	if err != nil {
		return &exitError{code: exitDataDir, err: fmt.Errorf("--fault-door: %w", err)}
	}
	path := d.data.file(faultSocket)
	d.faults = openFaultDoor(ctx, listener, func() { _ = os.Remove(path) }, d.node.System.Faults(), d.logger)
	d.onClose(d.faults.close)
	d.logger.Warn("THE FAULT DOOR IS OPEN: whoever may write to this socket can crash, pause and slow what runs here; not for production", "socket", path)
	return nil
}

// listenFaults makes the socket, for its owner only, in place of one that a crashed daemon left: the lock on the data directory says that
// nobody else uses it. It appears under its name when its rights are right: a socket has the wrong ones from the moment it is bound.
func listenFaults(data *dataDir) (net.Listener, error) {
	path, cradle := data.file(faultSocket), data.file(faultCradle)
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return nil, fmt.Errorf("%s has %d bytes, the name of a socket may have %d; give a shorter --data-dir", path, len(path), most)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is there and no socket; move it away", path)
	}
	if err := errors.Join(os.RemoveAll(cradle), os.Mkdir(cradle, 0o700)); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(cradle) }()
	newborn := filepath.Join(cradle, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: newborn, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would look under the name it was bound to
	if err := errors.Join(os.Chmod(newborn, 0o600), os.Rename(newborn, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
