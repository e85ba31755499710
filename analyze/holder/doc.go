// Package holder says who keeps the live memory of a snapshot: it joins the Python objects
// that the recorder saw with the blocks of the allocator, by address.
//
// In steps:
//
//  1. Each storage is laid over the live block that its address is in (normally both begin at
//     the same address). What matches nothing is counted on both sides, so that the bytes of
//     all holders and of the blocks without one add up to the allocated bytes.
//  2. From a virtual root above everything that keeps itself alive (modules, running functions,
//     classes, the interpreter, reference cycles, C++), the easiest chain of references to
//     each object is found: the fewest detours through autograd graphs, tracebacks and locals
//     that only pass by, then the fewest steps.
//  3. Going back along the chain from a tensor, the reference is found that a person would name:
//     a closure cell, a variable, an attribute. Positions in lists, keys and autograd edges are
//     passed over. Storages behind the same name are one Holder.
//  4. The dominator tree of the whole graph says what dropping the object behind that
//     reference would free: what cannot be reached without it.
//  5. A holder whose blocks are at sites that grow (package ghost) is a ghost: there the
//     inference from the trace and the objects that were seen agree. Holders that are as they
//     should be, such as a module's parameters, are told apart by how the chain runs.
//
// A chain is one way, chosen to be useful. What else refers to the same object is listed beside
// it, and what is freed is true whatever the chain.
package holder
