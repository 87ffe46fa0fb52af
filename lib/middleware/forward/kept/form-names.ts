import { GatewayError } from '../../../core/errors/index.ts'
import { kindOfField } from '../../../core/operations/body/references.ts'
import { isModelField, type ModelJudge } from './named-models.ts'

/** A longer head of a part is refused: it must be read whole. */
const MAX_HEAD_BYTES = 16 * 1024
/** A longer name of a model is refused. */
const MAX_MODEL_BYTES = 1024
const LINE_END = '\r\n'
const HEAD_END = '\r\n\r\n'
/** All parameters of a head that could be the name of its part, or a piece of it. */
const NAME = /[;\s]name\s*(\*[\d*\s]*)?=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/gis
const JSON_TYPE = /content-type\s*:\s*[\w.+-]+\/[\w.+-]*json/i
const FILE_NAME = /[;\s]filename\*?\s*=/i

/**
 * Reads the names of a form's parts while the form passes by, and the models that it names. It keeps nothing else of it. A
 * part that names something an upstream keeps is refused: its value is not read.
 *
 * Nothing ends a form here. What looks like its last boundary may be a part of a value, behind which an upstream reads on.
 */
export class FormNames {
  readonly #boundary: string
  /** The end of what came, which may be the beginning of a boundary or of a head. A copy: pieces are freed once they are sent. */
  #rest: Buffer = Buffer.alloc(0)
  #inHead = false
  readonly #judgeModel: ModelJudge | undefined
  /** The name of a model, as far as it came. */
  #model: string | undefined

  constructor(boundary: string, judgeModel?: ModelJudge) {
    this.#boundary = `--${boundary}`
    this.#judgeModel = judgeModel
  }

  /** @throws {GatewayError} if a part must not pass. */
  read(piece: Buffer): void {
    const data = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece
    let at = 0
    for (;;) {
      const mark = this.#inHead ? HEAD_END : this.#boundary
      const found = data.indexOf(mark, at, 'latin1')
      if (found < 0) break
      if (this.#inHead)
        this.#model = judge(data.toString('utf8', at, found)) && this.#judgeModel ? '' : undefined
      else this.#endModel(data.subarray(at, found))
      at = found + mark.length
      this.#inHead = !this.#inHead
    }
    if (!this.#inHead) {
      const passed = Math.max(at, data.length - this.#boundary.length - 1)
      this.#addToModel(data.subarray(at, passed))
      at = passed
    } else if (data.length - at > MAX_HEAD_BYTES) throw unreadable()
    this.#rest = Buffer.from(data.subarray(at))
  }

  /** @throws {GatewayError} if the form ends within the name of a model, which an upstream could take as it is. */
  end(): void {
    if (this.#model !== undefined) throw unreadable()
  }

  #addToModel(bytes: Buffer): void {
    if (this.#model === undefined) return
    this.#model += bytes.toString('latin1')
    if (this.#model.length > MAX_MODEL_BYTES) throw unreadable()
  }

  #endModel(bytes: Buffer): void {
    this.#addToModel(bytes)
    const model = this.#model
    this.#model = undefined
    if (model === undefined) return
    // An upstream may read on behind a boundary that begins no line.
    if (!model.endsWith(LINE_END)) throw unreadable()
    this.#judgeModel?.(Buffer.from(model.slice(0, -LINE_END.length), 'latin1').toString())
  }
}

/** Judges the head of a part. Returns whether its value names a model. */
function judge(head: string): boolean {
  let isModel = false
  for (const [, encoded, quoted, plain] of head.matchAll(NAME)) {
    const name = (quoted ?? plain ?? '').replaceAll('\\', '')
    if (encoded !== undefined) throw unreadable()
    if (kindOfField(name) !== undefined) throw notInForms(name)
    isModel ||= isModelField(name)
  }
  if (JSON_TYPE.test(head) && !FILE_NAME.test(head)) throw unreadable()
  return isModel
}

function unreadable(): GatewayError {
  return new GatewayError('invalid_request', {
    message: 'A part of the form has a head that cannot be read, or holds JSON. Send such a request as JSON.',
  })
}

/** The refusal of a field that names something an upstream keeps. */
export function notInForms(name: string): GatewayError {
  return new GatewayError('unsupported_feature', {
    param: name,
    message: 'A form cannot name what an upstream keeps. Send the request as JSON.',
  })
}
