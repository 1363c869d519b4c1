package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzRequests holds that no body is answered by a fault of ours: a client gets an answer or is told what is wrong, in JSON
// or in frames that end, and nothing is left in the engine. The bodies of the transcripts are the seeds.
func FuzzRequests(f *testing.F) {
	files, err := filepath.Glob("testdata/[a-z]*")
	if err != nil {
		f.Fatal(err)
	}
	paths := []string{"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}
	request := regexp.MustCompile(`(?m)^post (\S+).*\n(\{.*\})$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the folder of the fuzzer's own finds
		}
		for _, m := range request.FindAllSubmatch(text, -1) {
			for i, path := range paths {
				if path == string(m[1]) {
					f.Add(uint8(i), m[2])
				}
			}
		}
	}
	server := newFixture(f, setup{maxLen: 64})
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		r := httptest.NewRequest(http.MethodPost, paths[int(path)%len(paths)], strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		server.ServeHTTP(rec, r)
		answer := rec.Body.String()
		streamed := strings.HasPrefix(rec.Header().Get("Content-Type"), "text/event-stream")
		switch {
		case rec.Code >= 500 || rec.Code < 200:
			t.Errorf("%s answers %q with %d %s", r.URL.Path, body, rec.Code, answer)
		case streamed && (!strings.HasSuffix(answer, "\n\ndata: [DONE]\n\n") || strings.Contains(answer, `data: {"error"`)):
			t.Errorf("%s answers %q with the stream %s", r.URL.Path, body, answer)
		case !streamed && !jsontext.Value(answer).IsValid():
			t.Errorf("%s answers %q with what is no JSON: %s", r.URL.Path, body, answer)
		}
		server.t = t
		server.idle()
	})
}
