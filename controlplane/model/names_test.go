package model

import (
	"errors"
	"strings"
	"testing"
)

func TestNameGrammar(t *testing.T) {
	for _, good := range []string{"a", "0", "A-b_c.d", "9.", strings.Repeat("x", NameBytesMax)} {
		if err := CheckName("stream", good); err != nil || !ValidName(good) {
			t.Errorf("%.20q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "-a", "_a", "a/b", "a*", "*", "a:b", "a b", "a\x00", "ä", "aä", "a\n", strings.Repeat("x", NameBytesMax+1)} {
		err := CheckName("stream", bad)
		var name *NameError
		if !errors.As(err, &name) || name.Field != "stream" || !errors.Is(err, ErrInvalid) || ValidName(bad) {
			t.Errorf("%.20q is accepted, or refused without a NameError: %v", bad, err)
		}
	}
}

func TestErrorsRepeatOnlyTheHeadOfAForeignValue(t *testing.T) {
	huge := strings.Repeat("a", 1<<20)
	errs := []error{CheckName("stream", "*"+huge), CheckName("stream", huge), unknownValue("kind", huge, KindStreams)}
	errs = append(errs, repeats("tenant_id", huge, "t1"))
	for _, err := range errs {
		if text := err.Error(); len(text) > 400 {
			t.Errorf("an error has %d bytes", len(text))
		}
	}
}

func TestDisplayNameIsBoundedText(t *testing.T) {
	for _, good := range []string{"", "Payments ✓", strings.Repeat("x", DisplayNameBytesMax)} {
		if err := checkDisplayName(good); err != nil {
			t.Errorf("%.20q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{strings.Repeat("x", DisplayNameBytesMax+1), "a\xff", "line\nbreak", "\u0085"} {
		var field *FieldError
		if err := checkDisplayName(bad); !errors.As(err, &field) || field.Field != "display_name" {
			t.Errorf("%.20q is accepted, or refused without a FieldError: %v", bad, err)
		}
	}
	if err := (Tenant{TenantID: "t", DisplayName: " \t "}).Validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a blank tenant name is accepted: %v", err)
	}
}
