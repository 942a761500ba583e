package wire

import (
	"reflect"
	"testing"
)

func TestFeatureBitsHaveTheirPublishedValues(t *testing.T) {
	all := []Features{FeatureTopology, FeatureRedirect, FeatureCacheDelete, FeatureConsumerGroup, FeatureGroupDeadLetters,
		FeatureStreamShards, FeatureCacheWatch, FeatureCacheWatchRetained, FeatureCounters, FeatureIdempotentProducer,
		FeatureCacheShards, FeatureErrorCodes, FeatureShardMoved, FeatureUnsupported, FeatureSequenceReused,
		FeaturePublishPipeline, FeatureAtomicCommit, FeatureStreamPublishWindow, FeatureShardOwners, FeatureAckOnCommit,
		FeatureGroupConsumer, FeatureSubscriptionLagged, FeatureGroupSkipped, FeatureGroupPublisher, FeatureGroupAdmin,
		FeatureCacheConditional, FeatureRecordTimestamps, FeatureGroupClaimControl, FeaturePublishConditional,
		FeatureStreamRead, FeatureSubscribeQueue, FeatureExtended}
	for i, f := range all {
		if f != 1<<i {
			t.Errorf("bit %d has the value %#x", i, uint32(f))
		}
	}
	if FeatureHiInspect != 1 || FeatureHiExplicitShard != 8 || KnownFeaturesHi != 9 {
		t.Errorf("the second word is %#x, %#x", FeatureHiInspect, FeatureHiExplicitShard)
	}
	// The reference client offers everything except three features, as a published number.
	if got := ^(FeatureAckOnCommit | FeatureGroupPublisher | FeatureRecordTimestamps | FeatureExtended); got != 0x7B77FFFF {
		t.Errorf("the reference client's offer is %#x", uint32(got))
	}
}

func TestSecondFeatureWordCountsOnlyWithItsMarker(t *testing.T) {
	tests := []struct {
		name     string
		features Opt[Features]
		hi       Opt[uint32]
		want     Offer
	}{
		{"nothing", Opt[Features]{}, Opt[uint32]{}, Offer{}},
		{"word without marker", Some(FeatureTopology), Some(uint32(1)), Offer{Features: FeatureTopology}},
		{"marker without word", Some(FeatureTopology | FeatureExtended), Opt[uint32]{}, Offer{Features: FeatureTopology}},
		{"marker and zero word", Some(FeatureExtended), Some(uint32(0)), Offer{}},
		{"both", Some(FeatureExtended), Some(uint32(9)), Offer{Features: FeatureExtended, FeaturesHi: 9}},
		{"word alone", Opt[Features]{}, Some(uint32(9)), Offer{}},
	}
	for _, tt := range tests {
		a := Auth{ClientFeatures: tt.features, ClientFeaturesHi: tt.hi}
		if got := a.Offer(); got != tt.want {
			t.Errorf("%s: client %+v, want %+v", tt.name, got, tt.want)
		}
		ok := AuthOK{ServerFeatures: tt.features, ServerFeaturesHi: tt.hi}
		tt.want.HasFlags = true
		if got := ok.Offer(); got != tt.want {
			t.Errorf("%s: broker %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// mission 180, 186
func TestNegotiateGrantsWhatBothOfferedAndWhatItRestsOn(t *testing.T) {
	server := Offer{HasFlags: true, Flags: KnownFlags, Features: ^Features(0), FeaturesHi: ^uint32(0)}
	tests := []struct {
		name   string
		client Offer
		want   Grant
	}{
		{"a client without negotiation", Offer{}, Grant{}},
		{"legacy bits are not assumed but taken when offered", Offer{HasFlags: true, Flags: 0x0007}, Grant{Flags: 0x0007}},
		{"unknown bits are never granted", Offer{Flags: 0x8001}, Grant{Flags: 0x0001}},
		{"the reference client", Offer{Flags: 0x1FFF, Features: 0x7B77FFFF}, Grant{Flags: 0x1FFF, Features: 0x7B77FFFF}},
		{"ack parts without ack", Offer{Flags: 0x0680}, Grant{}},
		{"detail without code", Offer{Flags: 0x0410}, Grant{Flags: 0x0010}},
		{"ack offset alone still allows it in JSON", Offer{Flags: 0x1000}, Grant{Flags: 0x1000}},
		{"event parts without events", Offer{Flags: 0x6820}, Grant{}},
		{"skipped without offsets", Offer{Flags: 0x0804}, Grant{Flags: 0x0004}},
		{"publish parts without publish", Offer{Flags: 0x0148}, Grant{}},
		{"idempotent without acked", Offer{Flags: 0x0101}, Grant{Flags: 0x0001}},
		{"lagged without offsets", Offer{Flags: 0x0004, Features: FeatureSubscriptionLagged}, Grant{Flags: 0x0004}},
		{"lagged with offsets", Offer{Flags: 0x0024, Features: FeatureSubscriptionLagged}, Grant{Flags: 0x0024, Features: FeatureSubscriptionLagged}},
		{"group extras without groups", Offer{Features: FeatureGroupConsumer | FeatureGroupSkipped}, Grant{}},
		{"second word", Offer{Features: FeatureExtended, FeaturesHi: FeatureHiInspect}, Grant{Features: FeatureExtended, FeaturesHi: 1}},
		{"bits of the second word without a meaning", Offer{Features: FeatureExtended, FeaturesHi: 15}, Grant{Features: FeatureExtended, FeaturesHi: 9}},
		{"nothing left of the second word", Offer{Features: FeatureExtended, FeaturesHi: 6}, Grant{}},
	}
	for _, tt := range tests {
		if got := Negotiate(tt.client, server); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if got := Negotiate(tt.client, Offer{}); got != (Grant{}) {
			t.Errorf("%s: a broker that offers nothing grants %+v", tt.name, got)
		}
	}
}

func TestTheSecondWordIsGrantedAsFarAsBothOfferIt(t *testing.T) {
	offer := func(hi uint32) Offer { return Offer{Features: FeatureExtended, FeaturesHi: hi} }
	for client := range uint32(32) {
		for server := range uint32(32) {
			want := client & server & KnownFeaturesHi
			if got := Negotiate(offer(client), offer(server)); got.FeaturesHi != want || got.Features.Has(FeatureExtended) != (want != 0) {
				t.Errorf("client %d, broker %d: %+v", client, server, got)
			}
		}
	}
}

func TestEveryGrantOfFlagsIsUsable(t *testing.T) {
	server := Offer{Flags: KnownFlags}
	for i := 0; i <= 0xFFFF; i++ {
		g := Negotiate(Offer{Flags: Flags(i)}, server)
		ack := g.Flags & (FlagPublishAck | FlagPublishAckOwner | FlagPublishAckCode | FlagPublishAckDetail)
		if err := ack.CheckServerToClient(); err != nil {
			t.Fatalf("offer %04x: %v", i, err)
		}
		for _, base := range []Flags{FlagEventBatch, FlagEventBatchShared} {
			if g.Flags.Has(base) {
				events := base | g.Flags&(FlagEventOffsets|FlagEventSkipped|FlagEventPublisher|FlagEventTimestamps)
				if err := events.CheckServerToClient(); err != nil {
					t.Fatalf("offer %04x: %v", i, err)
				}
			}
		}
	}
}

func TestAuthOKTellsTheSecondWordOnlyToThoseWhoAsk(t *testing.T) {
	server := Offer{HasFlags: true, Flags: 25, Features: FeatureTopology, FeaturesHi: 1}
	asked := Auth{ClientFeatures: Some(FeatureExtended), ClientFeaturesHi: Some(uint32(1))}
	want := &AuthOK{ServerFlags: 25, ServerFeatures: Some(Features(2147483649)), ServerFeaturesHi: Some(uint32(1))}
	if got := server.AuthOK(asked); !reflect.DeepEqual(got, want) {
		t.Errorf("asked: %+v, want %+v", got, want)
	}
	want = &AuthOK{ServerFlags: 25, ServerFeatures: Some(FeatureTopology)}
	if got := server.AuthOK(Auth{}); !reflect.DeepEqual(got, want) {
		t.Errorf("not asked: %+v, want %+v", got, want)
	}
	if got := (Offer{Flags: 25}).AuthOK(asked); !reflect.DeepEqual(got, &AuthOK{ServerFlags: 25}) {
		t.Errorf("no features: %+v", got)
	}
}
