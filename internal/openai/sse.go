package openai

import "strconv"

// Done is the last frame of every stream.
const Done = "data: [DONE]\n\n"

// Frames writes the frames of one stream of server-sent events. It holds the part that all frames share, so that a frame
// costs the bytes of its delta. Safe for concurrent use once made.
type Frames struct {
	kind Kind
	head []byte // `data: {"id":…,"model":…,"choices":[`
}

// NewFrames prepares the frames of an answer.
func NewFrames(h Header) *Frames {
	head := h.appendHeader([]byte("data: "), true)
	return &Frames{kind: h.Kind, head: append(head, `,"choices":[`...)}
}

// AppendDelta appends a frame that adds d to its choice. usage may be nil.
func (f *Frames) AppendDelta(b []byte, d *Delta, usage *Usage) []byte {
	b = append(b, f.head...)
	if f.kind == Chat {
		b = d.appendChat(b)
	} else {
		b = d.appendText(b)
	}
	b = appendUsage(append(b, ']'), usage)
	if f.kind == Chat && d.PromptTokenIDs != nil { // of the message, as in a whole answer; a text has them with its choice
		b = append(b, `,"prompt_token_ids":`...)
		b = appendIDs(b, d.PromptTokenIDs)
	}
	return append(b, "}\n\n"...)
}

// AppendUsage appends the frame of include_usage: no choice, the usage of the request.
func (f *Frames) AppendUsage(b []byte, usage Usage) []byte {
	b = append(append(b, f.head...), ']')
	return append(appendUsage(b, &usage), "}\n\n"...)
}

// AppendErrorFrame appends the frame that reports an error after the first byte was sent.
func AppendErrorFrame(b []byte, e *Error) []byte {
	b = append(b, "data: "...)
	b = e.Append(b)
	return append(b, "\n\n"...)
}

// appendUsage appends the usage of a frame that has one.
func appendUsage(b []byte, usage *Usage) []byte {
	if usage == nil {
		return b
	}
	return usage.append(append(b, `,"usage":`...))
}

// appendChat appends the delta of a message. Members without a value are left out.
func (d *Delta) appendChat(b []byte) []byte {
	b = d.appendIndex(b)
	b = append(b, `,"delta":{`...)
	if d.Role != "" {
		b = append(b, `"role":`...)
		b = appendString(b, d.Role)
	}
	if d.Role != "" || d.Text != "" {
		if d.Role != "" {
			b = append(b, ',')
		}
		b = append(b, `"content":`...)
		b = appendString(b, d.Text)
	}
	b = append(b, '}')
	return d.appendRest(b, Chat)
}

// appendText appends the delta of a text.
func (d *Delta) appendText(b []byte) []byte {
	b = d.appendIndex(b)
	b = append(b, `,"text":`...)
	b = appendString(b, d.Text)
	return d.appendRest(b, Text)
}

// appendIndex opens the delta.
func (d *Delta) appendIndex(b []byte) []byte {
	b = append(b, `{"index":`...)
	return strconv.AppendInt(b, int64(d.Index), 10)
}

// appendRest appends what both forms have after the text, and closes the delta.
func (d *Delta) appendRest(b []byte, kind Kind) []byte {
	b = append(b, `,"logprobs":`...)
	b = appendLogprobs(b, kind, d.Logprobs)
	if d.FinishReason == "" {
		b = append(b, `,"finish_reason":null`...)
	} else {
		b = appendFinish(b, d.FinishReason, d.StopReason)
	}
	if d.TokenIDs != nil {
		b = append(b, `,"token_ids":`...)
		b = appendIDs(b, d.TokenIDs)
	}
	if kind == Text && d.PromptTokenIDs != nil {
		b = append(b, `,"prompt_token_ids":`...)
		b = appendIDs(b, d.PromptTokenIDs)
	}
	return append(b, '}')
}
