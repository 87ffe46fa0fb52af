import type { Scenario } from '../scenarios.ts'

/** The input of a client. */
export interface Ask {
  /** One after the other, each behind the answer to the one before. */
  readonly questions: readonly string[]
  readonly streamed: boolean
  /** Offers the two tools, and answers their calls. */
  readonly tools?: boolean
  /** Asks for the form. */
  readonly form?: boolean
  readonly thinks?: boolean
  readonly file?: { readonly type: 'image/png' | 'application/pdf'; readonly bytes: Buffer } | undefined
}

/** The reply that its user gets. */
export interface Reply {
  readonly text: string
  /** In how many pieces the text came. */
  readonly pieces: number
  /** The form, as the client has parsed it. */
  readonly form?: unknown
}

/** Where a client's requests go, and what is set there. */
export interface Place {
  readonly url: string
  readonly apiKey: string
  readonly headers: Record<string, string>
  readonly model: string
  /** Whether the client's own setting of the table is on. */
  readonly isSet: boolean
}

/** A client that people use, in one of the protocols that it speaks. */
export interface Framework {
  readonly name: string
  readonly speaks: 'chat' | 'responses' | 'messages'
  /** The name of the model that it is given; it goes by that. */
  readonly model: string
  /** It has no calls without a stream. */
  readonly alwaysStreams?: true
  /** It has files read by a tool of its own. */
  readonly readsFiles?: true
  readonly cannot?: readonly Scenario[]
  ask(ask: Ask, place: Place): Promise<Reply>
}

export const GPT = 'gpt-5.2'
export const OPUS = 'claude-opus-5-5'
export const CLAUDE = 'claude-haiku-4-5'
/** The maximum that no client may choose where none is set. */
export const MAX_TOKENS = 4000

export const dataUrl = ({ type, bytes }: NonNullable<Ask['file']>): string =>
  `data:${type};base64,${bytes.toString('base64')}`
