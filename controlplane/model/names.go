package model

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// NameBytesMax bounds a tenant, namespace, stream, cache or region name in bytes. Names are path segments, directory
// names and parts of permission objects; 128 keeps a whole (tenant, namespace, name) path below every limit met there.
const NameBytesMax = 128

// DisplayNameBytesMax bounds a display name in bytes: a label for people, not a document.
const DisplayNameBytesMax = 512

// CheckName returns nil when name obeys the grammar of names: 1 to NameBytesMax ASCII letters, digits, '-', '_' or
// '.', the first a letter or digit. Otherwise it returns a *NameError naming field. '*', '/' and ':' are refused
// because each would change meaning inside a permission object, a URL or a file path.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return &NameError{Field: field, Problem: "is empty"}
	case len(name) > NameBytesMax:
		return &NameError{Field: field, Problem: fmt.Sprintf("has %d bytes", len(name))}
	case !alphanumeric(name[0]):
		return &NameError{Field: field, Problem: fmt.Sprintf("%s starts with %q", quote(name), name[0])}
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return &NameError{Field: field, Problem: fmt.Sprintf("%s has %q at byte %d", quote(name), c, i)}
		}
	}
	return nil
}

// ValidName reports whether name obeys the grammar of CheckName.
func ValidName(name string) bool { return CheckName("", name) == nil }

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// checkDisplayName accepts any UTF-8 text without control characters up to DisplayNameBytesMax bytes.
func checkDisplayName(name string) error {
	problem := ""
	switch {
	case len(name) > DisplayNameBytesMax:
		problem = fmt.Sprintf("has %d bytes", len(name))
	case !utf8.ValidString(name):
		problem = "is not UTF-8"
	default:
		for _, r := range name {
			if unicode.IsControl(r) {
				problem = fmt.Sprintf("has the control character %U", r)
				break
			}
		}
	}
	if problem == "" {
		return nil
	}
	return &FieldError{Field: "display_name", Problem: problem,
		Advice: fmt.Sprintf("use at most %d bytes of UTF-8 text without control characters", DisplayNameBytesMax)}
}
