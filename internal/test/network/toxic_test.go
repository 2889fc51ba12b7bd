package network_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// line is a TCP connection through toxiproxy.
type line struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
}

// newLine returns a line to addr.
func newLine(t *testing.T, addr string) *line {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{t, toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", addr)}
	require.NoError(t, l.proxy.Start())
	t.Cleanup(l.proxy.Stop)
	return l
}

func (l *line) url() string { return "https://" + l.proxy.Listen }

// add adds a toxic in both directions.
func (l *line) add(kind, attributes string) {
	l.t.Helper()
	for _, direction := range []string{"upstream", "downstream"} {
		_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(
			fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%s}}`, kind, direction, attributes)))
		require.NoError(l.t, err)
	}
}

// roundTrip makes every round trip of the line this long.
func (l *line) roundTrip(d time.Duration) {
	l.add("latency", fmt.Sprintf(`"latency": %d`, d.Milliseconds()/2))
}

// dropConnections makes all open connections silent, without closing them. New ones work.
// The line needs the toxic "drop".
func (l *line) dropConnections() {
	l.t.Helper()
	for _, direction := range []string{"upstream", "downstream"} {
		_, err := l.proxy.Toxics.UpdateToxicJson("drop_"+direction, strings.NewReader(
			fmt.Sprintf(`{"attributes": {"before": %d}, "toxicity": 1}`, time.Now().UnixNano())))
		require.NoError(l.t, err)
	}
}

// dropToxic loses all data of connections made before an instant. Toxiproxy's own toxics
// affect new connections, too.
type dropToxic struct {
	Before int64 `json:"before"` // in nanoseconds since 1970
}

func (*dropToxic) NewState() any { return time.Now().UnixNano() }

func (d *dropToxic) Pipe(stub *toxics.ToxicStub) {
	made, _ := stub.State.(int64)
	lost := made < d.Before
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			switch {
			case chunk == nil && lost: // the other side must not notice
				<-stub.Interrupt
				return
			case chunk == nil:
				stub.Close()
				return
			case !lost:
				stub.Output <- chunk
			}
		}
	}
}
