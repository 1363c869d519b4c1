package metric

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
)

// pageFresh is how long a page is good for. Routers scrape every 50 ms, each of them: however many there are, pages are
// rendered at most this often.
const pageFresh = 50 * time.Millisecond

// page is what GET /metrics showed last.
type page struct {
	fresh time.Duration

	mu   sync.Mutex // guards what follows; held while a page is rendered, so that it is rendered once
	body []byte
	at   time.Time
}

// ServeHTTP answers GET /metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, err := m.render(time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(body) // the scraper has gone: nobody is left to tell
}

// render returns a page that is fresh at the time now. It must not be written to.
func (m *Metrics) render(now time.Time) ([]byte, error) {
	m.page.mu.Lock()
	defer m.page.mu.Unlock()
	if m.page.body != nil && now.Sub(m.page.at) < m.page.fresh {
		return m.page.body, nil
	}
	families, err := m.registry.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Grow(len(m.page.body) + 1024)
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, err
		}
	}
	m.page.body, m.page.at = text.Bytes(), now
	return m.page.body, nil
}
