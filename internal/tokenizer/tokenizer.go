package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// None is the id of a token that does not exist.
const None = int32(-1)

// Options says what Encode does besides turning text into ids. The zero value takes the text as it is.
type Options struct {
	AddSpecial   bool // put BOS in front and EOS at the end, where the model asks for them
	ParseSpecial bool // turn the text of control tokens, such as <|im_end|>, into their ids
}

// Tokenizer encodes and decodes for one vocabulary. It does not change and may be used by many goroutines at once.
type Tokenizer struct {
	v     *vocab
	model textModel
	ids   SpecialIDs
	ends  []int32

	addBOS, addEOS, spacePrefix bool

	parsed   *specials // with ParseSpecial: control, unknown and user-defined tokens
	unparsed *specials // without: user-defined tokens only

	scratch sync.Pool // of *merger
}

// textModel encodes text in which no special token is to be found.
type textModel interface {
	appendText(dst []int32, text string, m *merger) []int32
}

// New makes a tokenizer from the plain values of a file.
func New(cfg Config) (*Tokenizer, error) {
	v, err := newVocab(cfg.Tokens, cfg.Types)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{v: v, ids: cfg.Special.within(len(cfg.Tokens))}
	t.scratch.New = func() any { return new(merger) }
	var rules preRules
	switch cfg.Model {
	case "gpt2":
		if rules, err = findRules(cfg.Pre); err != nil {
			return nil, err
		}
		if rules.noBOS {
			t.ids.BOS = None
		}
		t.addBOS = rules.addBOS
	case "llama":
		t.addBOS, t.spacePrefix = true, true
	case "":
		return nil, fmt.Errorf("tokenizer.ggml.model is missing: the file holds no tokenizer")
	default:
		return nil, fmt.Errorf("tokenizer.ggml.model: unknown tokenizer %q, known are gpt2 and llama", cfg.Model)
	}
	t.ends = findEnds(v, t.ids)
	if strings.Contains(strings.ToLower(cfg.Name), "phi-3") || strings.Contains(strings.ToLower(cfg.Name), "phi3") {
		stripAfterPhi3(v)
	}
	if cfg.Model == "gpt2" {
		t.model, err = newBPE(v, cfg.Merges, rules)
	} else {
		t.model, err = newSPM(v, cfg.Scores, t.ids.Unknown)
	}
	if err != nil {
		return nil, err
	}
	if err := t.setPrefixes(cfg); err != nil {
		return nil, err
	}
	t.setSpecials()
	return t, nil
}

// setPrefixes decides what AddSpecial adds: what the file says goes before what its kind usually does.
func (t *Tokenizer) setPrefixes(cfg Config) error {
	for _, flag := range []struct {
		set *bool
		to  *bool
	}{{&t.addBOS, cfg.AddBOS}, {&t.addEOS, cfg.AddEOS}, {&t.spacePrefix, cfg.AddSpacePrefix}} {
		if flag.to != nil {
			*flag.set = *flag.to
		}
	}
	if t.addBOS && t.ids.BOS == None {
		return fmt.Errorf("tokenizer.ggml.add_bos_token is set, but there is no tokenizer.ggml.bos_token_id")
	}
	if t.addEOS && t.ids.EOS == None {
		return fmt.Errorf("tokenizer.ggml.add_eos_token is set, but there is no tokenizer.ggml.eos_token_id")
	}
	return nil
}

// setSpecials sorts the special tokens into those always found in text and those found on request.
func (t *Tokenizer) setSpecials() {
	var always, all []int32
	for id := range t.v.attrs {
		switch a := t.v.attrs[id]; {
		case a&(attrControl|attrUnknown) != 0:
			all = append(all, int32(id))
		case a&attrUserDefined != 0:
			all = append(all, int32(id))
			always = append(always, int32(id))
		}
	}
	t.parsed, t.unparsed = newSpecials(t.v, all), newSpecials(t.v, always)
}

// stripAfterPhi3 marks the tokens that swallow white space after them: all added tokens of Phi-3 but three. The files do
// not say so; llama.cpp too goes by general.name.
func stripAfterPhi3(v *vocab) {
	for id, text := range v.texts {
		switch text {
		case "<unk>", "<s>", "<|endoftext|>":
			continue
		}
		if v.has(int32(id), attrControl|attrUserDefined|attrUnknown) {
			v.attrs[id] |= attrStripRight
		}
	}
}

// Encode returns the ids of text.
func (t *Tokenizer) Encode(text string, o Options) []int32 {
	return t.AppendEncode(nil, text, o)
}

// maxScratch is the number of symbols up to which scratch space is kept for the next text. A word needs more only when it
// is a megabyte of one letter.
const maxScratch = 1 << 14

// AppendEncode appends the ids of text to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, o Options) []int32 {
	if o.AddSpecial && t.addBOS {
		dst = append(dst, t.ids.BOS)
	}
	m := t.scratch.Get().(*merger)
	special := t.unparsed
	if o.ParseSpecial {
		special = t.parsed
	}
	pos, first := 0, true // first: nothing or a special token is before pos
	for _, match := range special.find(text) {
		if pos < match.start {
			dst = t.appendFragment(dst, text[pos:match.start], first, m)
		}
		dst = append(dst, match.id)
		pos, first = match.end, true
	}
	if pos < len(text) {
		dst = t.appendFragment(dst, text[pos:], first, m)
	}
	if cap(m.symbols) <= maxScratch {
		t.scratch.Put(m)
	}
	if o.AddSpecial && t.addEOS {
		dst = append(dst, t.ids.EOS)
	}
	return dst
}

// appendFragment appends the ids of text without special tokens.
func (t *Tokenizer) appendFragment(dst []int32, text string, first bool, m *merger) []int32 {
	if first && t.spacePrefix {
		text = " " + text
	}
	return t.model.appendText(dst, text, m)
}

// Piece returns the bytes of one token, special tokens as their text. The bytes need not be whole characters. The slice
// is a view that must not be written to. It is nil for an id outside the vocabulary.
func (t *Tokenizer) Piece(id int32) []byte { return t.v.piece(id) }

// AppendDecode appends the bytes of ids to dst; with skipSpecial, control and unknown tokens give nothing.
func (t *Tokenizer) AppendDecode(dst []byte, ids []int32, skipSpecial bool) []byte {
	for _, id := range ids {
		if skipSpecial && t.IsSpecial(id) {
			continue
		}
		dst = append(dst, t.v.piece(id)...)
	}
	return dst
}

// Decode returns the text of ids. It is always UTF-8: see Detokenizer for what takes the place of bytes that are not.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := t.NewDetokenizer(skipSpecial)
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(d.Push(id))
	}
	text.WriteString(d.Flush())
	return text.String()
}

// DecodeText is Decode for ids that are a text from its beginning: it takes away the space that Encode puts in front of
// texts for some vocabularies, such as Llama 2's.
func (t *Tokenizer) DecodeText(ids []int32, skipSpecial bool) string {
	begin := slices.IndexFunc(ids, func(id int32) bool { return !t.IsSpecial(id) })
	if !t.spacePrefix || begin < 0 {
		return t.Decode(ids, skipSpecial)
	}
	return t.Decode(ids[:begin], skipSpecial) + strings.TrimPrefix(t.Decode(ids[begin:], skipSpecial), " ")
}

// VocabSize returns the number of tokens: ids count from 0 to below it.
func (t *Tokenizer) VocabSize() int { return len(t.v.texts) }

// BOS returns the id of the token that begins a text, or None.
func (t *Tokenizer) BOS() int32 { return t.ids.BOS }

// EOS returns the id of the token that the file names as ending a text, or None. Models have more: see EOG.
func (t *Tokenizer) EOS() int32 { return t.ids.EOS }

// EOG returns all ids that end a generation, in ascending order. The slice must not be written to.
func (t *Tokenizer) EOG() []int32 { return t.ends }

// AddBOS says whether Options.AddSpecial puts BOS in front.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// AddEOS says whether Options.AddSpecial puts EOS at the end.
func (t *Tokenizer) AddEOS() bool { return t.addEOS }

// IsSpecial says whether a token is hidden from text by default: control and unknown tokens are, and ids outside the
// vocabulary.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id < 0 || int(id) >= len(t.v.attrs) || t.v.has(id, attrControl|attrUnknown)
}

// Find returns the id of the token with the given text, spelled as in the file, or None.
func (t *Tokenizer) Find(text string) int32 { return t.v.find(text) }
