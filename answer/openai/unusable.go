package openai

// Unusable says that no call to this server can succeed until a person has
// done something: it is not there, refuses the key, has no such model, or
// wants to be paid. Package answer makes no further call after such an error.
func (e *Error) Unusable() bool {
	switch e.Kind {
	case Down, Unauthorized, OutOfQuota, NotFound:
		return true
	}
	return false
}
