export { fingerprintOf } from './fingerprint.ts'
export { type AnswerRecord, answerRecordIn, RecordedAnswer, sendRecorded } from './recorded-answer.ts'
export { contentOf } from './request-content.ts'
