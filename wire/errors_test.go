package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorTableIsCompleteAndUnambiguous(t *testing.T) {
	names, numbers := map[string]bool{}, map[Code]bool{}
	for _, row := range codeTable {
		if names[row.name] || numbers[row.code] {
			t.Errorf("%s is in the table twice", row.name)
		}
		names[row.name], numbers[row.code] = true, true
		if got, ok := ParseCode(row.name); !ok || got != row.code {
			t.Errorf("ParseCode(%q) = %d, %v", row.name, got, ok)
		}
		if !strings.HasSuffix(row.code.Sentence(), ".") {
			t.Errorf("%s has no sentence", row.name)
		}
		if row.code <= 15 && row.binary != row.code || row.binary == 0 || row.binary > 15 {
			t.Errorf("%s travels as %d", row.name, row.binary)
		}
	}
	if len(codeTable) != 17 {
		t.Errorf("%d codes, want the 15 numbered ones and 2 named ones", len(codeTable))
	}
}

func TestUnknownCodesAndClassesAreKeptAndFatal(t *testing.T) {
	if c := Code(77); c.String() != "code_77" || c.DefaultRetry() != RetryFatal || c.Sentence() != "" {
		t.Errorf("code 77 is %s, %s", c, c.DefaultRetry())
	}
	if c, ok := ParseCode("of_a_later_version"); ok || c != CodeUnknown || c.String() != "unknown" {
		t.Errorf("unknown name is %d, %v", c, ok)
	}
	for _, b := range []uint8{0, 6, 255} {
		if retryOf(b) != RetryFatal || Retry(b).String() != "fatal" {
			t.Errorf("class %d is %s", b, Retry(b))
		}
	}
	if r, ok := ParseRetry("sometimes"); ok || r != RetryFatal {
		t.Errorf("unknown class is %s, %v", r, ok)
	}
	for r := RetryRetry; r <= RetryFatal; r++ {
		if got, ok := ParseRetry(r.String()); !ok || got != r {
			t.Errorf("ParseRetry(%s) = %s", r, got)
		}
	}
}

func TestRefusalIsAnErrorThatIsFoundByItsCode(t *testing.T) {
	refusal := Refuse(CodeOverloaded, "no room for the publish").WithReason(ReasonPublishQueueFull, 40)
	err := fmt.Errorf("publish: %w", refusal)
	if !errors.Is(err, Refusal{Code: CodeOverloaded}) || errors.Is(err, Refusal{Code: CodeInternal}) {
		t.Error("errors.Is must compare the code alone")
	}
	var got Refusal
	if !errors.As(err, &got) || got.Retry != RetryAfter || got.RetryAfterMS != 40 {
		t.Errorf("errors.As gives %+v", got)
	}
	if err.Error() != "publish: overloaded (publish_queue_full): no room for the publish" {
		t.Errorf("text is %q", err)
	}
	if got := Refuse(CodeStorage, "x").WithRetry(RetryRetry); got.Retry != RetryRetry || got.Error() != "storage: x" {
		t.Errorf("with another class: %+v", got)
	}
}

func TestFailureTellsCodesOnlyToClientsThatReadThem(t *testing.T) {
	refusal := Refuse(CodeOverloaded, "busy").WithReason(ReasonTenantQuota, 40)
	coded := Grant{Features: FeatureErrorCodes}
	if got := FailureOf(refusal, Grant{}); got != (Failure{Message: "busy"}) {
		t.Errorf("without the offer: %+v", got)
	}
	if got := FailureOf(refusal, coded).Refusal(); got != refusal {
		t.Errorf("there and back: %+v, want %+v", got, refusal)
	}
	if got := FailureOf(Refusal{Code: CodeStorage, Message: "m"}, coded).Refusal(); got.Retry != RetryOutcomeUnknown {
		t.Errorf("a refusal without a class gets that of its code: %+v", got)
	}
	if got := FailureOf(Refusal{Message: "m", Retry: RetryRetry}, coded).Refusal(); got.Code != CodeInternal || got.Retry != RetryRetry {
		t.Errorf("a class without a code travels as internal: %+v", got)
	}
	if got := FailureOf(Refusal{Message: "m"}, coded).Refusal(); got != (Refusal{Message: "m"}) {
		t.Errorf("neither code nor class: %+v", got)
	}
	const text = `{"type":"error","message":"busy","code":"overloaded","retry":"retry_after","detail":{"reason":"tenant_quota","retry_after_ms":40}}`
	if got := string(AppendJSON(nil, ErrorOf(refusal, coded))); got != text {
		t.Errorf("error message %s", got)
	}
	if got := FailureOf(Refuse(CodeRevoked, "m"), coded); got.Code.V != "revoked" {
		t.Errorf("codes without a number have their name in JSON: %+v", got)
	}
}

func TestFailureFromALaterVersionKeepsItsClass(t *testing.T) {
	f := Failure{Message: "m", Code: Some("new"), Retry: Some("retry")}
	if got := f.Refusal(); got.Code != CodeUnknown || got.Retry != RetryRetry {
		t.Errorf("%+v", got)
	}
	f.Retry = Opt[string]{}
	if got := f.Refusal(); got.Retry != RetryFatal {
		t.Errorf("an unknown code without a class is fatal: %+v", got)
	}
	f = Failure{Message: "m", Code: Some("draining")}
	if got := f.Refusal(); got.Retry != RetryRetry {
		t.Errorf("a known code without a class has its default: %+v", got)
	}
}

func TestErrorTextIsCutAtACharacter(t *testing.T) {
	long := strings.Repeat("a", MaxErrorTextBytes-1) + "é"
	if got := cutText(long); got != long[:MaxErrorTextBytes-1] {
		t.Errorf("cut to %d bytes", len(got))
	}
	if got := cutText(long[1:]); got != long[1:] {
		t.Errorf("a text of exactly the limit was cut to %d", len(got))
	}
}
