import type { Members } from './members.ts'

/** What a deployment serves: the kind of its model, and its endpoint. */
export interface Served {
  readonly kind: 'chat' | 'embedding' | 'image' | 'rerank' | 'video'
  readonly endpoint: string
}

const CHAT: Served = { kind: 'chat', endpoint: 'chat/completions' }
const EMBEDDING: Served = { kind: 'embedding', endpoint: 'embeddings' }
const IMAGE: Served = { kind: 'image', endpoint: 'images/generations' }
const RERANK: Served = { kind: 'rerank', endpoint: 'rerank' }
const VIDEO: Served = { kind: 'video', endpoint: 'videos' }

/** By LiteLLM's `mode`. */
const MODES: ReadonlyMap<string, Served> = new Map([
  ['chat', CHAT],
  ['completion', { kind: 'chat', endpoint: 'completions' }],
  ['responses', { kind: 'chat', endpoint: 'responses' }],
  ['embedding', EMBEDDING],
  ['image_generation', IMAGE],
  ['rerank', RERANK],
  ['video_generation', VIDEO],
])

/** LiteLLM knows the mode of most models from a list of its own, so that files rarely say it. */
const BY_NAME: readonly (readonly [name: RegExp, mode: string])[] = [
  [/rerank/, 'rerank'],
  [/embed|(^|[-_/])(bge|e5|gte|minilm)-/, 'embedding'],
  [/dall-e|gpt-image|imagen|stable-diffusion|(^|[-_/])flux[-._]/, 'image_generation'],
  [/(^|[-_/])(sora|veo)-/, 'video_generation'],
  [/whisper|transcribe/, 'audio_transcription'],
  [/(^|[-_/])tts(-|$)/, 'audio_speech'],
  [/moderation/, 'moderation'],
  [/realtime/, 'realtime'],
]

/**
 * Returns what a deployment serves, by its `mode` or else its names; undefined if that has no model here, which is noted.
 *
 * @param routeMode the mode that the route says, such as that of `azure/responses/…`.
 * @param names the provider's name of the model and its `base_model`.
 */
export function readServed(
  info: Members,
  routeMode: string | undefined,
  names: readonly string[],
): Served | undefined {
  const given = info.text('mode')
  const guessed = BY_NAME.find(([name]) => names.some((text) => name.test(text.toLowerCase())))?.[1]
  const mode = given ?? routeMode ?? guessed ?? 'chat'
  const served = MODES.get(mode)
  if (!served) {
    info.note(
      'mode',
      `${given ? 'has' : 'is not set, but the name has it:'} ${mode}, which no model here has; the deployment is left out: add a line without models and a rule of passThrough for its path`,
    )
  } else if (mode === guessed && given === undefined) {
    info.note(
      'mode',
      `is not set; "${served.kind}" was taken from the name: see whether the model's kind is right`,
    )
  }
  if (served?.endpoint === 'responses')
    info.note(
      'mode',
      'responses: chat calls are not translated to it, so callers use /v1/responses; if the provider has the model at chat/completions, add that to the endpoints of the line',
    )
  return served
}
