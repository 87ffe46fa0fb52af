export { type ErrorEnvelopeOptions, errorEnvelope, unknownPath } from './error-envelope.ts'
