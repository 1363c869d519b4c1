package tokenizer

import "fmt"

// A scanner cuts text into words before byte-level BPE. The published rules are regular expressions; here they are
// written out by hand, each beside the pattern it stands for, since a regular expression engine is ten times slower
// and, on hostile text, not linear. scan_test.go compares them with such an engine.
type scanner interface {
	// next returns the end of the word that begins at text[pos]; pos is less than len(text) and the result more than pos.
	next(text string, pos int) int
}

// preRules is what tokenizer.ggml.pre decides.
type preRules struct {
	scan scanner

	// wholeWords: a word that is a token is taken whole even when the merge list would not lead to it (Hugging Face's
	// ignore_merges).
	wholeWords bool

	addBOS bool // when the file does not say tokenizer.ggml.add_bos_token
	noBOS  bool // the model has no BOS token, whatever the default
}

// findRules returns the rules for a value of tokenizer.ggml.pre. The names are those that llama.cpp's converter writes.
func findRules(pre string) (preRules, error) {
	classes := sharedClasses()
	switch pre {
	case "":
		return preRules{}, fmt.Errorf("tokenizer.ggml.pre is missing: the file does not say how text is cut into words; " +
			"convert the model again with a current converter")
	case "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert",
		"mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4":
		return preRules{scan: gpt2Scanner{classes: classes}}, nil
	case "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2":
		return preRules{scan: gpt2Scanner{classes: classes, splitNumbers: true}}, nil
	case "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 3}, wholeWords: true, addBOS: true}, nil
	case "dbrx", "smaug-bpe":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 3}}, nil
	case "chatglm-bpe":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 3}, noBOS: true}, nil
	case "glm4", "glm5":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 3}, wholeWords: true, noBOS: true}, nil
	case "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 1}}, nil
	case "gpt-4o", "llama4", "kanana2", "talkie":
		rest := llama3Scanner{classes: classes, maxNumber: 3, slashEnds: true}
		return preRules{scan: casedScanner{rest: rest, endings: true}}, nil
	case "tekken":
		rest := llama3Scanner{classes: classes, maxNumber: 1, slashEnds: true}
		return preRules{scan: casedScanner{rest: rest}, wholeWords: true, addBOS: true}, nil
	case "qwen35":
		return preRules{scan: llama3Scanner{classes: classes, maxNumber: 1, marksInWords: true}}, nil
	}
	return preRules{}, fmt.Errorf("tokenizer.ggml.pre: unknown pre-tokenizer %q", pre)
}

// gpt2Scanner follows GPT-2's pattern:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// With splitNumbers the text is first cut before and after each \p{N}, so that a number never takes the space before it
// and white space before it is one word (smollm, starcoder).
type gpt2Scanner struct {
	classes      *classTable
	splitNumbers bool
}

func (s gpt2Scanner) next(text string, pos int) int {
	r, c, size := s.classes.at(text, pos)
	if c == classNumber && s.splitNumbers {
		return pos + size
	}
	if r == '\'' {
		if n := contraction(text[pos+1:], false); n > 0 {
			return pos + 1 + n
		}
	}
	end := pos + size
	if r == ' ' { // " ?": the space goes with the word that follows
		_, c, size = s.classes.at(text, end)
		if c == classEnd || c == classSpace || c == classNumber && s.splitNumbers {
			return s.spaces(text, end)
		}
		end += size
	}
	switch c {
	case classSpace:
		return s.spaces(text, end)
	case classLetter, classNumber:
		return s.run(text, end, c)
	default:
		return s.others(text, end)
	}
}

// run returns the end of the run of class c.
func (s gpt2Scanner) run(text string, pos int, c class) int {
	for {
		_, next, size := s.classes.at(text, pos)
		if next != c {
			return pos
		}
		pos += size
	}
}

// others returns the end of the run [^\s\p{L}\p{N}]+.
func (s gpt2Scanner) others(text string, pos int) int {
	for {
		_, c, size := s.classes.at(text, pos)
		if c != classOther && c != classMark {
			return pos
		}
		pos += size
	}
}

// spaces ends a word of white space whose first character ends at pos: \s+(?!\S) leaves the last character of the run to
// what follows, unless it is the only one or the text (or the part of it before a number) ends here.
func (s gpt2Scanner) spaces(text string, pos int) int {
	last := 0 // size of the run's last character, 0 while there is only the first
	for {
		_, c, size := s.classes.at(text, pos)
		switch {
		case c == classSpace:
			pos += size
			last = size
		case c == classEnd || c == classNumber && s.splitNumbers:
			return pos
		default:
			return pos - last
		}
	}
}

// llama3Scanner follows the pattern of Llama 3:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Qwen2's differs in \p{N} instead of \p{N}{1,3}; Qwen3.5's also has [\p{L}\p{M}]+ for words and leaves \p{M} out of the
// punctuation.
type llama3Scanner struct {
	classes      *classTable
	maxNumber    int // most characters of a number in one word
	marksInWords bool
	slashEnds    bool // slashes go with the line breaks after punctuation: [\r\n/]* (gpt-4o, tekken)
}

func (s llama3Scanner) next(text string, pos int) int {
	r, c, size := s.classes.at(text, pos)
	if r == '\'' {
		if n := contraction(text[pos+1:], true); n > 0 {
			return pos + 1 + n
		}
	}
	if s.inWord(c) {
		return s.word(text, pos+size)
	}
	if c != classNumber && r != '\r' && r != '\n' {
		if _, following, followingSize := s.classes.at(text, pos+size); s.inWord(following) {
			return s.word(text, pos+size+followingSize)
		}
	}
	return s.nextOther(text, pos)
}

// nextOther ends a word that is no word: a number, punctuation or white space.
func (s llama3Scanner) nextOther(text string, pos int) int {
	r, c, size := s.classes.at(text, pos)
	if c == classNumber {
		return s.number(text, pos+size)
	}
	if r == ' ' {
		if _, following, followingSize := s.classes.at(text, pos+size); s.inPunctuation(following) {
			return s.punctuation(text, pos+size+followingSize)
		}
	}
	if s.inPunctuation(c) {
		return s.punctuation(text, pos+size)
	}
	return s.spaces(text, pos)
}

func (s llama3Scanner) inWord(c class) bool {
	return c == classLetter || c == classMark && s.marksInWords
}

func (s llama3Scanner) inPunctuation(c class) bool {
	return c == classOther || c == classMark && !s.marksInWords
}

// word returns the end of the run of letters.
func (s llama3Scanner) word(text string, pos int) int {
	for {
		_, c, size := s.classes.at(text, pos)
		if !s.inWord(c) {
			return pos
		}
		pos += size
	}
}

// number ends a number whose first character ends at pos.
func (s llama3Scanner) number(text string, pos int) int {
	for range s.maxNumber - 1 {
		_, c, size := s.classes.at(text, pos)
		if c != classNumber {
			break
		}
		pos += size
	}
	return pos
}

// punctuation ends [^\s\p{L}\p{N}]+[\r\n]* whose first character ends at pos.
func (s llama3Scanner) punctuation(text string, pos int) int {
	for {
		_, c, size := s.classes.at(text, pos)
		if !s.inPunctuation(c) {
			break
		}
		pos += size
	}
	for pos < len(text) && (text[pos] == '\r' || text[pos] == '\n' || text[pos] == '/' && s.slashEnds) {
		pos++
	}
	return pos
}

// spaces ends a word of white space that begins at pos: up to its last line break if it has one, else as in
// gpt2Scanner.spaces.
func (s llama3Scanner) spaces(text string, pos int) int {
	start, last, lineEnd := pos, 0, 0
	for {
		r, c, size := s.classes.at(text, pos)
		if c != classSpace {
			break
		}
		pos += size
		last = size
		if r == '\r' || r == '\n' {
			lineEnd = pos
		}
	}
	switch {
	case lineEnd > 0:
		return lineEnd
	case pos == len(text) || pos-last == start:
		return pos
	}
	return pos - last
}

// contraction returns the length of the English ending that text begins with, after its apostrophe, or 0.
func contraction(text string, fold bool) int {
	if text == "" {
		return 0
	}
	letter := func(i int) byte {
		if fold && 'A' <= text[i] && text[i] <= 'Z' {
			return text[i] | 0x20
		}
		return text[i]
	}
	first := letter(0)
	switch first {
	case 's', 't', 'm', 'd':
		return 1
	}
	if len(text) < 2 {
		return 0
	}
	second := letter(1)
	if second == 'e' && (first == 'r' || first == 'v') || first == 'l' && second == 'l' {
		return 2
	}
	return 0
}
