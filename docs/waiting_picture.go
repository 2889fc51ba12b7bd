package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The picture's size, and the frame in it; both axes are logarithmic.
const (
	width, height            = 780, 470
	left, right, top, bottom = 78, 590, 62, 410
	mostWaits, mostRequests  = 1e5, 2.5e5
)

// lines are drawn in this order, each with its label at its end. Their colours
// differ on light and dark backgrounds and for colour-blind readers. The shapes of
// their points differ too.
var lines = []struct{ way, label, hint, colour, point string }{
	{"one by one", "one by one", "a GET each, every 30 s", "#d2691e", `<path d="M%[1]v %[2]v m-4.5 3.6h9l-4.5 -8z"/>`},
	{"spread", "spread", "1 in 60 of the listing", "#8a63d2", `<path d="M%[1]v %[2]v m-4 -4h8v8h-8z"/>`},
	{"dense", "dense", "side by side in it", "#2f81f7", `<circle cx="%v" cy="%v" r="4.2"/>`},
}

const waitingHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13">
<title id="title">Requests a minute against meetings waited for: one by one, spread in the listing, and dense</title>
<style>
text { fill: #24292f } .quiet { fill: #59636e } .grid { stroke: #d5dbe1 } .axis { stroke: #818b98 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9aa4af } .grid { stroke: #343b44 } .axis { stroke: #7d8590 } }
</style>
<text x="16" y="26" font-size="16" font-weight="600">Requests a minute, by meetings waited for</text>
<text x="16" y="46" class="quiet">Both axes are logarithmic. One hour; few of the meetings end in it.</text>
`

type point struct{ waits, requests float64 }

func (p point) x() float64 {
	return round(left + (right-left)*math.Log10(p.waits)/math.Log10(mostWaits))
}

func (p point) y() float64 {
	return round(bottom - (bottom-top)*math.Log10(p.requests)/math.Log10(mostRequests))
}

func round(f float64) float64 { return math.Round(f*10) / 10 }

// picture draws the benchmark Waits, whose results are named "1000/dense".
func picture(waits []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, waitingHead, width, height)
	axes(&b)
	points := make(map[string][]point)
	for _, r := range waits {
		n, way, _ := strings.Cut(r.name, "/")
		if waits, err := strconv.ParseFloat(n, 64); err == nil {
			points[way] = append(points[way], point{waits, max(1, r.values["requests/min"])})
		}
	}
	for _, l := range lines {
		if len(points[l.way]) == 0 {
			continue
		}
		slices.SortFunc(points[l.way], func(p, q point) int { return cmp.Compare(p.waits, q.waits) })
		var path strings.Builder
		for i, p := range points[l.way] {
			fmt.Fprintf(&path, "%c%v %v", "ML"[min(i, 1)], p.x(), p.y())
		}
		fmt.Fprintf(&b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n<g fill=\"%s\">", path.String(), l.colour, l.colour)
		for _, p := range points[l.way] {
			fmt.Fprintf(&b, l.point, p.x(), p.y())
		}
		last := points[l.way][len(points[l.way])-1]
		fmt.Fprintf(&b, "</g>\n<text x=\"%v\" y=\"%v\" font-weight=\"600\">%s: %s</text>\n<text x=\"%v\" y=\"%v\" class=\"quiet\">%s</text>\n",
			last.x()+14, last.y()+1, l.label, number(last.requests, 0), last.x()+14, last.y()+17, l.hint)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// axes draws the grid, its numbers and its title.
func axes(b *strings.Builder) {
	for n := 1.0; n <= mostRequests; n *= 10 {
		y := point{1, n}.y()
		fmt.Fprintf(b, "<path d=\"M%d %vH%d\" class=\"%s\"/><text x=\"%d\" y=\"%v\" text-anchor=\"end\" class=\"quiet\">%s</text>\n",
			left, y, right, class(n), left-10, y+4.5, number(n, 0))
	}
	for n := 1.0; n <= mostWaits; n *= 10 {
		x := point{n, 1}.x()
		fmt.Fprintf(b, "<path d=\"M%v %dV%d\" class=\"%s\"/><text x=\"%v\" y=\"%d\" text-anchor=\"middle\" class=\"quiet\">%s</text>\n",
			x, top, bottom, class(n), x, bottom+20, number(n, 0))
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">meetings waited for</text>\n", (left+right)/2, bottom+44)
}

func class(n float64) string {
	if n == 1 {
		return "axis"
	}
	return "grid"
}
