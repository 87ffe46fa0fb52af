export { fingerprintOf } from './fingerprint.ts'
export { RecordedAnswer, sendRecorded } from './recorded-answer.ts'
export { contentOf } from './request-content.ts'
