package engine

// stopMatcher looks for stop strings in a text that arrives in pieces. What it finds does not depend on where the
// pieces end: the match that is complete first wins, and of two that are complete at once the longer.
//
// It is one Knuth-Morris-Pratt automaton for each stop string, so a byte costs a few comparisons whatever the text.
type stopMatcher struct {
	stops []stopString
}

type stopString struct {
	text string
	fail []int // [i]: length of the longest proper prefix of text[:i+1] that is also its suffix
	at   int   // bytes of text that the end of the input matches
}

func newStopMatcher(stops []string) stopMatcher {
	var m stopMatcher
	for _, s := range stops {
		if s == "" {
			continue // refused by the server; it would match before any text
		}
		fail := make([]int, len(s))
		for i, k := 1, 0; i < len(s); i++ {
			for k > 0 && s[i] != s[k] {
				k = fail[k-1]
			}
			if s[i] == s[k] {
				k++
			}
			fail[i] = k
		}
		m.stops = append(m.stops, stopString{text: s, fail: fail})
	}
	return m
}

// push advances by one byte and returns the stop string that ends with it, or "".
func (m *stopMatcher) push(c byte) (found string) {
	for i := range m.stops {
		s := &m.stops[i]
		for s.at > 0 && s.text[s.at] != c {
			s.at = s.fail[s.at-1]
		}
		if s.text[s.at] == c {
			s.at++
		}
		if s.at == len(s.text) {
			if len(s.text) > len(found) {
				found = s.text
			}
			s.at = s.fail[s.at-1]
		}
	}
	return found
}

// partial returns how many bytes at the end of the input may be the beginning of a stop string.
func (m *stopMatcher) partial() int {
	n := 0
	for i := range m.stops {
		n = max(n, m.stops[i].at)
	}
	return n
}
