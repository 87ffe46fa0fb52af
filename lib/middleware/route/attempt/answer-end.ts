import type { AnswerBytes } from '../../../core/call/index.ts'
import type { AnswerReading, StreamReader } from '../../../core/operations/index.ts'
import type { FailedEnd } from '../../../routing/attempt/failure.ts'
import type { RelaySink } from '../relay/stream-relay.ts'

/** How the exchange of a routed request ended. */
export type AnswerEnd =
  | {
      readonly kind: 'served'
      /** The whole answer, or the last events of a stream. It is sent once the call is settled. */
      readonly unsent: AnswerBytes
      /** The content of a whole answer. */
      readonly reading?: AnswerReading
      /** The reader of a stream. */
      readonly reader?: StreamReader
    }
  | { readonly kind: 'abandoned'; readonly failure?: undefined; readonly reader: StreamReader | undefined }
  | (FailedEnd & { readonly reader: StreamReader | undefined })

/** Opens the caller's stream once the line's stream begins. */
export interface StreamOpener {
  openStream(): RelaySink
  /** Called when the first bytes of a success arrive. */
  onFirstByte?(): void
}
