package engine_test

import (
	"testing"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestMain(m *testing.M) { testbase.Main(m) }
