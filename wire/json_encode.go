package wire

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// appendString appends s as a JSON string: quotes, backslash and control characters escaped, everything else as it
// is. Bytes that are no UTF-8 become U+FFFD, so that the result always is valid UTF-8.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			if r, n = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		dst = append(dst, s[done:i]...)
		dst = appendEscaped(dst, r)
		i += n
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// appendEscaped appends a character that cannot stand in a string as it is.
func appendEscaped(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case utf8.RuneError:
		return utf8.AppendRune(dst, utf8.RuneError)
	}
	const hexDigits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
}

// appendBase64String appends b as a base64 string.
func appendBase64String(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

func appendUint(dst []byte, v uint64) []byte { return strconv.AppendUint(dst, v, 10) }
