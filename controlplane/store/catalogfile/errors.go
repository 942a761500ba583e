package catalogfile

import "fmt"

// DamageError says that the file is not what was written. Nothing was changed: what became of it is for people to find out.
type DamageError struct{ Why string }

// Error says what is wrong, and what can be done.
func (e *DamageError) Error() string {
	return Name + " is damaged: " + e.Why + "; nothing was changed. Put back a copy of it, or move it away to begin with an empty catalog: " +
		"then streams and caches of the same names are new ones, without the records they had"
}

func damaged(format string, args ...any) error {
	return &DamageError{Why: fmt.Sprintf(format, args...)}
}

// VersionError says that the file was written by a felixd that writes another version of it. Nothing was changed.
type VersionError struct{ Found uint32 }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has version %d, and this felixd reads versions %d to %d; nothing was changed. Start the felixd that wrote it", Name, e.Found, firstVersion, Version)
}
