package server

import (
	"net/http"

	"github.com/quire-ai/quire/internal/openai"
)

// transferIgnored is what a client is told that sends kv_transfer_params, and the log once.
const transferIgnored = "kv_transfer_params is ignored: KV is exchanged through the tiers (--kv-valkey), not between peers"

// ignoreTransfer warns of kv_transfer_params. The answer is the same without them, only later, so they are no fault: routers
// that split prefill and decode send them to whatever stands behind them.
func (s *Server) ignoreTransfer(w http.ResponseWriter, c *openai.Common) {
	if !c.TransfersKV() {
		return
	}
	w.Header().Set("X-Quire-Warning", transferIgnored)
	s.ignored.Do(func() { s.log.Warn(transferIgnored) })
}
