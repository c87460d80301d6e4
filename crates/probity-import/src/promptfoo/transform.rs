//! Transforms: JavaScript or Python that makes something else out of a reply, a variable or a context.
