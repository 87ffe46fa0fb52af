export { PROTOCOLS, protocolByPath } from './by-path.ts'
export { endOfFrame, endOfLastFrame, LONGEST_BLANK, readFrame, type StreamEvent } from './event-stream.ts'
export type { Protocol, ProtocolName } from './protocol.ts'
