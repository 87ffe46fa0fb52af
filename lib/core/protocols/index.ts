export { PROTOCOLS, protocolByPath } from './by-path.ts'
export {
  endOfFrame,
  endOfLastFrame,
  isEventStream,
  MAX_BLANK_LENGTH,
  readFrame,
  type StreamEvent,
} from './event-stream.ts'
export type { Protocol, ProtocolName } from './protocol.ts'
