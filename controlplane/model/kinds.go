package model

// Kind names a family of records, spelled as in the feed paths.
type Kind string

// The families of records that exist now.
const (
	KindTenants    Kind = "tenants"
	KindNamespaces Kind = "namespaces"
	KindStreams    Kind = "streams"
	KindCaches     Kind = "caches"
)

// Kinds lists every Kind, parents before children, in the order a reader should take snapshots.
func Kinds() []Kind { return []Kind{KindTenants, KindNamespaces, KindStreams, KindCaches} }

// Singular names one record of the kind in a sentence.
func (k Kind) Singular() string {
	switch k {
	case KindTenants:
		return "tenant"
	case KindNamespaces:
		return "namespace"
	case KindStreams:
		return "stream"
	case KindCaches:
		return "cache"
	}
	return "record of unknown kind " + quote(string(k))
}

// Record is one of Tenant, Namespace, Stream and Cache, always by value.
type Record interface {
	// RecordKind tells the family of the record.
	RecordKind() Kind
	// Key is the record's key within its family: a tenant leaves Namespace and Name empty, a namespace leaves Name
	// empty.
	Key() ResourceName
	record()
}
