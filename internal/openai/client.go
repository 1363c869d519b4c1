package openai

import (
	"bufio"
	"bytes"
	"io"
	"iter"

	"github.com/go-json-experiment/json"
)

// Reply is what a client reads of an answer, or of one frame of its stream, in either form.
type Reply struct {
	ID      string `json:"id"`
	Choices []struct {
		Index        int          `json:"index"`
		Text         string       `json:"text"`
		Message      ReplyMessage `json:"message"` // of a whole chat answer
		Delta        ReplyMessage `json:"delta"`   // of a frame of one
		FinishReason string       `json:"finish_reason"`
		TokenIDs     []int32      `json:"token_ids"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          *struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   string `json:"param"`
	} `json:"error"`
}

// ReplyMessage is the text that a chat answer or one of its frames carries.
type ReplyMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning"`
}

// DecodeReply reads an answer, a frame or an error. Unlike Decode it forgives what other servers write.
func DecodeReply(data []byte) (*Reply, error) {
	var r Reply
	err := json.Unmarshal(data, &r)
	return &r, err
}

// Events yields the data of each server-sent event of r, for clients, until [DONE], which it does not yield. A stream that
// ends without [DONE] yields io.ErrUnexpectedEOF. The data is valid until the next turn of the loop.
func Events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		var long []byte // collects a line that exceeds the buffer
		for {
			line, err := lines.ReadSlice('\n')
			if err == bufio.ErrBufferFull {
				long = append(long, line...)
				continue
			}
			if err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				yield(nil, err)
				return
			}
			if len(long) > 0 {
				line = append(long, line...)
				long = long[:0]
			}
			data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
			if !ok {
				continue // a comment, an empty line or another field
			}
			data = bytes.TrimPrefix(data, []byte(" "))
			if string(data) == "[DONE]" {
				return
			}
			if !yield(data, nil) {
				return
			}
		}
	}
}
