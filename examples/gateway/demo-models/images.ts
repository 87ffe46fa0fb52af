import type { DataEndpoint } from './data-endpoint.ts'
import { encodePng } from './png.ts'
import { readCount, readText } from './prompt.ts'
import { countTokens } from './tokens.ts'

const SIZE = 256
const MAX_IMAGES = 10
/** The tokens of a small image of low quality at the real API. */
const TOKENS_PER_IMAGE = 272

/** Serves `POST /v1/images/generations` with grey waves, the same ones for the same prompt. */
export const images: DataEndpoint = {
  read(body) {
    const model = readText(body, 'model')
    const prompt = readText(body, 'prompt')
    const count = readCount(body, 'n', 1, MAX_IMAGES)
    const inputTokens = countTokens(prompt)
    return {
      model,
      inputTokens,
      async answer(withheld) {
        const made = withheld ? 0 : count
        const pictures = await Promise.all(
          Array.from({ length: made }, (_, variant) => draw(prompt, variant)),
        )
        const outputTokens = made * TOKENS_PER_IMAGE
        return {
          created: Math.floor(Date.now() / 1000),
          data: pictures.map((base64) =>
            body.response_format === 'url'
              ? { url: `data:image/png;base64,${base64}` }
              : { b64_json: base64 },
          ),
          size: `${SIZE}x${SIZE}`,
          quality: 'low',
          output_format: 'png',
          usage: {
            input_tokens: inputTokens,
            input_tokens_details: { text_tokens: inputTokens, image_tokens: 0 },
            output_tokens: outputTokens,
            total_tokens: inputTokens + outputTokens,
          },
        }
      },
    }
  },
}

/** Draws a picture and returns it as PNG in base64. */
async function draw(prompt: string, variant: number): Promise<string> {
  const pixels = Buffer.alloc(SIZE * SIZE)
  const along = 1 + (prompt.length % 7)
  const across = 1 + ((prompt.codePointAt(0) ?? 0) % 5) + variant
  for (let at = 0; at < pixels.length; at++) {
    const x = (at % SIZE) / SIZE
    const y = Math.floor(at / SIZE) / SIZE
    pixels[at] = 127.5 + 127.5 * Math.sin(2 * Math.PI * along * x) * Math.cos(2 * Math.PI * across * y)
  }
  return (await encodePng(pixels, SIZE)).toString('base64')
}
