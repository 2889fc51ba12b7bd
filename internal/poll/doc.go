// Package poll decides when to poll which meeting, for any number of waits at once, and does it.
//
// It has one idea: each awaited meeting is due for a GET at one time, and a sweep of list pages
// puts off the GETs of the meetings that it shows. A poll is a GET of one meeting; a list page shows
// up to fifty.
//
// Read the files in this order. The first three are pure: they have no clock, lock or network.
//
//   - watch.go: one meeting. It is in one of four states (a newcomer, due, under way, or expected
//     on a page), and the state says when its GET is due.
//   - plan.go: which request comes next, and what the outcome of a GET changes.
//   - window.go: which pages are worth reading, and what the outcome of a page changes.
//   - service.go, poller.go, subscription.go: the Poller owns the lock, the timer and the requests.
//     It publishes what responses show to the subscriptions, one for each wait, and judges nothing.
//   - discovery.go: Follow finds new meetings on the pages.
//
// For example, somebody begins to wait for three meetings. As newcomers they are due at once, so
// each gets a GET. The first good response makes it due a cycle later. Fewer than five waits are not
// worth a page, so each goes on with a GET every thirty seconds. If there are seven waits, of which
// six are on the first page of the list, then a sweep begins when the first of them is due. Its page
// saves six GETs and costs one request, so it pays: the six become expected, and the page is read
// every thirty seconds instead. The seventh has a GET every thirty seconds. If the page no longer
// shows one of the six, that one falls due when the sweep has ended.
//
// # What each rule is worth
//
// Each rule was removed alone, and the scenarios of this package measured it again (requests a
// minute; p99 is from the change of a status until the wait is notified).
//
//	rule                                  without it
//	the window of pages                   1,000 at the top: 41 → 1,117 a minute
//	pages pay together, not each alone    ten that sink under 2,400: 21 → 145 a minute
//	a sweep looks one page further for    two pages instead: 1,000 under 2,000: 123 → 1,117 a minute;
//	every eight missing meetings          10,000 under 5,000: 630 → 3,553; 100 under 500: 25 → 199
//	Follow needs the first page anyway    one meeting without audio: 2 → 15 GETs in an hour
//	an expected meeting has no GET until  a GET after 1.25 cycles instead: Follow over 20,000: 33 → 66 s;
//	a sweep has ended without it          latency of 3 s: 92 → 588 a minute
//	a sweep that takes longer than GETs   pages of 20 s: p99 46 → 133 s;
//	ends, or puts nothing off             Follow with pages of 16 s: 47 → 79 s
//	a list with 429s for a minute, while  like other failures: list limited for an hour: 100 → 232 s;
//	GETs have none, is left alone         never: 100 → 3,590 s
//	a page and a GET that are due         GETs first: 10,000 at the top: p99 30 → 121 s, 416 → 864 a
//	alternate                             minute; pages first: a newcomer waits for them
//	the cycle grows with the square root  linearly: 1,000 under 13,000: p99 59 → 102 s, 1,117 → 660
//	of the requests                       a minute
//	eight requests a second, not more,    1,000 at the top: 41 → 72 a minute; one in four of 4,000,
//	while a cycle needs fewer             quota of 120: p99 79 → 224 s
//	a meeting that changes rarely is      Follow with 70 stuck meetings: 2 → 42 a minute
//	polled rarely
//	an outage pauses requests, and one    1,000 while all is down: 3 → 1,122 a minute;
//	at a time finds its end               in the ten minutes after that: 42 → 80
//	fewer than five waits have no sweep   four below the first page: 8 → 10 a minute
//	a phase                               500 Clients that begin together: 10 % → 104 % of a cycle's
//	                                      requests in one second
//	the pace after a 429 (internal/rest)  ten processes at 100 %: 219 → 3,220 a minute
//
// One rule shows in no scenario, but in the tests of the plan. A GET that got a 429 keeps its time:
// otherwise a newcomer could go to the end of the line again and again.
//
// No rule makes a GET late after an outage: a failed request is made again after half a minute at
// most, and what ends a pause is any good response.
//
// # Traps
//
// Each of these once caused a collapse. Test them before anything else.
//
//  1. A 404 or a rejection of a GET is a success of the service. If it counts as a failure, it
//     becomes an outage.
//  2. The time of the next sweep is computed when it is asked for (began plus the cycle of now). It
//     is never stored when the sweep begins.
//  3. After a 429, GETs must not replace pages: otherwise ten processes collapse into 27,000 GETs.
//  4. If only the list is limited, only pages back off, and the list's Retry-After must not stop
//     GETs.
//  5. Back-pressure counts the requests that wait to be sent (two at most), and not only those under
//     way: otherwise 29 are sent in a second after a pause.
//  6. If the last subscription leaves and another joins while a GET is under way, the meeting must
//     not be polled twice.
//  7. Callbacks of the user on other goroutines race with the loop's body.
//  8. A status may come with an Updated that is lower than that of the status before, because the
//     service's machines have clocks of their own. A wait that drops such a snapshot never ends.
//  9. A meeting that leaves or joins during a sweep must not change which meetings the sweep looks
//     for: otherwise it stops a page too early, or reads on for nothing.
package poll
