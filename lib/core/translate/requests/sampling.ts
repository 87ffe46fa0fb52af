import type { JsonObject } from '../../json/index.ts'

/** Returns `temperature` and `top_p` of a request, as far as it has them. */
export function samplingOf({ temperature, top_p: topP }: JsonObject): JsonObject {
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { top_p: topP }),
  }
}
