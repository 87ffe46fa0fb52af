import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from './faults.ts'
import { fileIn, readForm } from './multipart.ts'
import { readBody } from './read-body.ts'

const SAMPLES_PER_SECOND = 16_000
const SECONDS_PER_WORD = 0.15
const MAX_WORDS = 400

/** Answers a request for audio; returns false for any other request. */
export async function serveAudio(
  req: IncomingMessage,
  res: ServerResponse,
  path: string,
  limitBytes: number,
): Promise<boolean> {
  if (req.method !== 'POST') return false
  if (path === '/v1/audio/speech') {
    const { input } = await readBody(req, limitBytes)
    if (typeof input !== 'string' || input === '') {
      throw new Fault('invalid_request', { message: '"input" must be a text.', param: 'input' })
    }
    const sound = speak(input)
    res.writeHead(200, { 'content-type': 'audio/wav', 'content-length': sound.length }).end(sound)
    return true
  }
  if (path !== '/v1/audio/transcriptions') return false
  const form = await readForm(req, limitBytes)
  const file = fileIn(form)
  const text = `This is a demo: it hears ${file.size} bytes of ${file.name}, and understands none of them.`
  const asText = form.get('response_format') === 'text'
  res.writeHead(200, { 'content-type': asText ? 'text/plain; charset=utf-8' : 'application/json' })
  res.end(asText ? `${text}\n` : JSON.stringify({ text }))
  return true
}

/** Returns a WAV file with a tone for each word; longer words have higher tones. */
function speak(text: string): Buffer {
  const words = text.split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)
  const perWord = SAMPLES_PER_SECOND * SECONDS_PER_WORD
  const samples = Buffer.alloc(words.length * perWord * 2)
  for (const [i, word] of words.entries()) {
    const hertz = 200 + 30 * Math.min(word.length, 20)
    for (let at = 0; at < perWord; at++) {
      // The tone fades, so that words can be distinguished.
      const loudness = 8000 * (1 - at / perWord)
      const sample = Math.sin((2 * Math.PI * hertz * at) / SAMPLES_PER_SECOND) * loudness
      samples.writeInt16LE(Math.round(sample), (i * perWord + at) * 2)
    }
  }
  return Buffer.concat([wavHeader(samples.length), samples])
}

/** Returns the header for 16-bit samples on one channel. */
function wavHeader(bytes: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + bytes, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLES_PER_SECOND, 24)
  header.writeUInt32LE(SAMPLES_PER_SECOND * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(bytes, 40)
  return header
}
