//! What user code of a task sees: the handler, its context, its errors.
