// Package category says what memory is for: parameters, gradients, optimizer state, and so on.
//
// A snapshot does not record it, so every category is an inference from two things: the stack
// that allocated a block (inside an optimizer, inside a module's forward, in the autograd
// engine's own thread, which has no Python frames) and how long the block lived (to the end of
// the backward pass, past the step, to the end). Each comes with a confidence, and what neither
// tells stays unknown: blocks from before the trace without a stack, for one.
//
//	parameter        made by Module.to, a constructor or a checkpoint, and kept
//	optimizer state  allocated inside an optimizer, and alive after the step
//	gradient         allocated by the backward pass: those of parameters outlive it, those of
//	                 activations do not, and have a low confidence
//	autograd saved   allocated in forward, and alive while backward runs
//	activation       allocated in forward, and not (only inference, or recomputed)
//	input            allocated by the program's own code before the step's forward pass
//	temporary        freed soon, or within the optimizer that made it
//	workspace        cuBLAS scratch memory
//	communication    buffers of torch.distributed
//	other            the program's own code, none of the above; key-value caches too
//
// Rules of the user's, patterns over frames, come before all of it.
package category
