package api

import "net/http"

// Unready says why an instance can't serve now.
type Unready struct {
	Reason  string // stable: draining, store_timeout, store_error, schema_behind, no_leader, apply_lag, ...
	Message string // for people
}

type systemStatus struct {
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// live serves GET /v1/system/live: whoever can answer at all is alive. It touches nothing.
func (a *api) live(*call) (reply, error) {
	return reply{http.StatusOK, systemStatus{Status: "live"}}, nil
}

// ready serves GET /v1/system/ready and its old name, health.
func (a *api) ready(*call) (reply, error) {
	if u := a.Ready(); u != nil {
		return reply{http.StatusServiceUnavailable, systemStatus{Status: "unready", Reason: u.Reason, Message: u.Message}}, nil
	}
	return reply{http.StatusOK, systemStatus{Status: "ready"}}, nil
}
