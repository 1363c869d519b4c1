package tokenizer

import "slices"

// A GGUF file names one end token, while models have several, and some files give them the wrong type. So, as llama.cpp
// does, tokens are also known by their texts: those below end a generation, and are control tokens whatever the file says.
var (
	endTexts = []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>",
		"<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	}

	// Fill-in-the-middle tokens: of each group the first that exists, unless the file names one. The groups of padding,
	// repository name and file separator end a generation too.
	fimPrefixTexts = []string{
		"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
		"<|code_prefix|>", "<|prefix|>",
	}
	fimSuffixTexts = []string{
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
		"<|code_suffix|>", "<|suffix|>",
	}
	fimMiddleTexts = []string{
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
		"<|code_middle|>", "<|middle|>",
	}
	fimPadTexts       = []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}
	fimRepoTexts      = []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}
	fimSeparatorTexts = []string{"<|file_sep|>"}

	// Parts of gpt-oss's message format that its users want to see.
	harmonyTexts = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
)

// findEnds corrects the attributes of well-known tokens and returns the ids that end a generation, in ascending order.
// named are the end tokens that the file names.
func findEnds(v *vocab, ids SpecialIDs) []int32 {
	ends := map[int32]bool{}
	control := func(id int32) { v.attrs[id] |= attrControl }
	for _, group := range []struct {
		named int32
		texts []string
		ends  bool
	}{
		{ids.FIMPrefix, fimPrefixTexts, false},
		{ids.FIMSuffix, fimSuffixTexts, false},
		{ids.FIMMiddle, fimMiddleTexts, false},
		{ids.FIMPad, fimPadTexts, true},
		{ids.FIMRepo, fimRepoTexts, true},
		{ids.FIMSeparator, fimSeparatorTexts, true},
	} {
		id := group.named
		for i := 0; id == None && i < len(group.texts); i++ {
			if id = v.find(group.texts[i]); id != None {
				control(id)
			}
		}
		if id != None && group.ends {
			ends[id] = true
		}
	}
	for _, text := range endTexts {
		if id := v.find(text); id != None {
			control(id)
			ends[id] = true
		}
	}
	for _, text := range harmonyTexts {
		if id := v.find(text); id != None {
			v.attrs[id] = attrUserDefined
		}
	}
	for _, id := range []int32{ids.EOS, ids.EOT, ids.EOM} {
		if id != None {
			ends[id] = true
		}
	}
	keepHarmonyEnd(v, ends)
	list := make([]int32, 0, len(ends))
	for id := range ends {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// keepHarmonyEnd takes <|end|> out where it separates messages instead of ending the answer, which is where the other
// end tokens of gpt-oss or Solar Open exist.
func keepHarmonyEnd(v *vocab, ends map[int32]bool) {
	has := func(text string) bool { return v.find(text) != None }
	end := v.find("<|end|>")
	call := has("<|call|>") || has("<|calls|>")
	if end != None && call && (has("<|return|>") || has("<|flush|>")) {
		delete(ends, end)
		v.attrs[end] = attrUserDefined
	}
}
