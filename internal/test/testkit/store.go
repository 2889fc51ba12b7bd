package testkit

import (
	"context"
	"sync"

	"github.com/meeting-minutes/minutes-go"
)

// Store is a minutes.Store in memory.
type Store struct {
	Err func(id string) error // if it returns an error, every method returns that; may be nil

	mu     sync.Mutex
	states map[string]minutes.MeetingState
	saves  int
}

// Load implements minutes.Store.
func (s *Store) Load(_ context.Context, id string) (minutes.MeetingState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[id], s.err(id)
}

// Save implements minutes.Store.
func (s *Store) Save(_ context.Context, id string, old, next minutes.MeetingState) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err(id); err != nil || s.states[id] != old {
		return false, err
	}
	if s.states == nil {
		s.states = make(map[string]minutes.MeetingState)
	}
	s.states[id] = next
	s.saves++
	return true, nil
}

// Delete implements minutes.Store.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, id)
	return s.err(id)
}

func (s *Store) err(id string) error {
	if s.Err == nil {
		return nil
	}
	return s.Err(id)
}

// Len returns the number of meetings that have a state.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.states)
}

// Saves returns how often a state was saved.
func (s *Store) Saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}
