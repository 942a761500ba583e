package api

import (
	"net/http"
)

// groupsMax is how many groups of a stream a listing shows: as many as fit easily into an answer.
const groupsMax = 10_000

// group is a consumer group as a listing shows it.
type group struct {
	Group string `json:"group"`
}

// groupList is the listing of a stream's groups. It has one page.
type groupList struct {
	Items     []group `json:"items"`
	Truncated bool    `json:"truncated,omitempty"` // there are more than these
}

// listGroups serves GET .../streams/{stream}/groups: the names of the groups that the brokers know, in their order.
func (a *api) listGroups(c *call) (reply, error) {
	n, err := streamFamily().one(c)
	if err != nil {
		return reply{}, err
	}
	if _, err := a.Store.Stream(c.ctx, n); err != nil {
		return reply{}, err
	}
	list := groupList{Items: []group{}}
	if a.Groups == nil {
		return reply{http.StatusOK, list}, nil
	}
	names, err := a.Groups(c.ctx, n, groupsMax+1)
	if err != nil {
		return reply{}, &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, retry: true, Message: err.Error()}
	}
	if list.Truncated = len(names) > groupsMax; list.Truncated {
		names = names[:groupsMax]
	}
	for _, name := range names {
		list.Items = append(list.Items, group{name})
	}
	return reply{http.StatusOK, list}, nil
}
