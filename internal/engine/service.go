// Package engine is the Meeting Minutes Service in memory: the API of the
// interface and the storage behind its upload URLs, without a goroutine, a
// timer or a channel.
//
// A meeting's state is a function of when its audio arrived, of its script
// and of now. Every request first settles what has fallen due in its
// organisation, in the order of the instants at which it fell due, so quotas,
// transitions and history are the same whether somebody looked or not. Now is
// time.Now in the goroutine of the request; inside a testing/synctest bubble
// that is the bubble's time.
package engine

import (
	"errors"
	"net/http"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Service is the service in memory. It is safe for use by many at once, from
// inside and outside synctest bubbles.
type Service struct{}

// New returns a service that holds what cfg says, or an error that names the
// place in cfg that cannot be.
func New(cfg Config) (*Service, error) { return &Service{}, nil }

// Reset begins anew with cfg, as New does: meetings, scripts, cursors and
// upload URLs of before are gone. On error nothing changes.
func (s *Service) Reset(cfg Config) error { return nil }

// Serve answers one request to the API or to storage, and says what became of
// it.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) Exchange { return Exchange{} }

// Identify says which operation r asks for, and of which meeting, without
// doing anything. The operation is "" where the interface has none.
func Identify(r *http.Request) (op route.Operation, meetingID string) { return "", "" }

// SetPageSize makes list pages short, or empty, on demand: the interface lets
// a page hold fewer items than its limit. Nil takes it back.
func (s *Service) SetPageSize(f PageSize) {}

// Meeting tells everything about a meeting, as of now.
func (s *Service) Meeting(id string) (MeetingState, bool) { return MeetingState{}, false }

// Organisation returns the settings of an organisation as they are now,
// members, projects and terms added through the API included.
func (s *Service) Organisation(id string) (Organisation, bool) { return Organisation{}, false }

// Update changes an organisation while it is in use: change edits what
// [Service.Organisation] returns, which is then checked as New does and taken
// as a whole. Credits and TranscribeSeconds set what is left now. Meetings
// stay. change runs under a lock and must not call the Service.
func (s *Service) Update(id string, change func(*Organisation)) error { return errors.New("engine") }

// Script sets what becomes of the meetings sel names, from now on: those yet
// to come, and what still lies ahead of those under way. It replaces an
// earlier script of the same selector; the zero Script takes it away. The
// script with the narrowest selector counts: id, external id, title, all.
func (s *Service) Script(sel Selector, sc Script) error { return nil }

// Release lets a held meeting go on, and reports whether it was held. The
// rest of its stage, if any, still has to pass.
func (s *Service) Release(id string) bool { return false }

// Advance moves a meeting on without a clock, held or not, until it is in
// state until or in a final one; with until "" by one state. It returns the
// state reached. A meeting that is not there, has no audio or is already
// past until is an error.
func (s *Service) Advance(id string, until minutes.Status) (minutes.Status, error) { return "", nil }
