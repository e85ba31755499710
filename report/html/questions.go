package html

import "github.com/snapana/snapana/analyze"

// question is what a reader may want to know, with the place of its answer.
type question struct{ ID, Text string }

// addQuestions links to the answers, of the device that the verdict is about.
func (p *document) addQuestions(r *analyze.Result) {
	if len(p.Devices) == 0 {
		return
	}
	id := deviceID(r.Devices[ranking(r)[0]].Timeline.Device)
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.ID != id {
			continue
		}
		add := func(there bool, place, text string) {
			if there {
				p.Questions = append(p.Questions, question{place, text})
			}
		}
		live := "What is live?"
		if d.Traced {
			live = "What is live at the peak?"
		}
		add(d.Traced, id+"-timeline", "When did it happen?")
		add(len(d.Stacks) > 0, id+"-holders", live)
		add(p.Holders != nil, "holders", "Who holds it?")
		add(d.Steps != nil, id+"-steps", "What grows?")
		add(len(d.Frag.Ledgers) > 0, id+"-free", "Why is so much reserved?")
		add(d.WhatIf != nil, id+"-whatif", "Would another setting help?")
	}
	if p.Pinned != nil {
		p.Questions = append(p.Questions, question{"pinned", "What is pinned on the host?"})
	}
	p.Questions = append(p.Questions, question{"data", "Is the data complete?"})
}

// telling is the ledger for the first screen: of the moment when memory ran out, or else of the
// first one, nil when there is none. Ledgers are by phase.
func telling(phases []phase, ledgers []ledger) *ledger {
	for i := range ledgers {
		if phases[i].OOM {
			return &ledgers[i]
		}
	}
	if len(ledgers) == 0 {
		return nil
	}
	return &ledgers[0]
}
