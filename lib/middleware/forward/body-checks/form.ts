import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, JsonFault, parseUnambiguous } from '../../../core/json/index.ts'
import { isData, kindOfField, partsOfField, referencesIn } from '../../../core/operations/body/references.ts'
import { checkModels, isModelField, type ModelCheck } from './model-names.ts'

/** A longer head of a part is refused: it must be read whole. */
const MAX_HEAD_BYTES = 16 * 1024
/** A longer name of a model is refused. */
const MAX_MODEL_BYTES = 1024
/** A longer value that may be JSON is refused: it must be read whole. */
const MAX_JSON_BYTES = 256 * 1024
/** So much of a value is read, behind spaces, before it is decided whether it may be JSON; and so much with them. */
const BEGIN_BYTES = 64
const BEGIN_BYTES_WITH_SPACES = 4096
const LINE_END = '\r\n'
const HEAD_END = '\r\n\r\n'

/** A line of a head: no folded line, no character that ends a line for some. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: no head may have them
const HEAD_LINE = /^([\w-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$/
const DISPOSITION =
  /^form-data((?:[ \t]*;[ \t]*[\w*]+[ \t]*=[ \t]*(?:"[^"]*"|[^\s";,()\\]+))*)[ \t]*;?[ \t]*$/i
const PARAMETER = /([\w*]+)[ \t]*=[ \t]*(?:"([^"]*)"|([^\s";,()\\]+))/g
/** The name of a file as RFC 5987 writes it. */
const ENCODED_FILE_NAME = /^utf-8'[\w-]*'[\w%.!#$&+^`|~-]*$/i
/** A name in the name of a file: a parser that knows no quotes takes it for that of the part. */
const NAME_WITHIN = /name[\s\d*]*=/i
const PART_TYPE = /^([\w.+-]+\/[\w.+-]+)((?:[ \t]*;[ \t]*[\w-]+=(?:[\w.+/:-]+|"[^"\\]*"))*)[ \t]*;?[ \t]*$/
const OTHER_CHARSET = /charset=(?!"?(?:utf-?8|us-ascii)"?(?:[ \t;]|$))/i
/** The fields of known upstreams that are files. The content of others is checked as that of a field. */
const FILE_FIELD =
  /^(?:audio|data|document|file|image|input_reference|mask|reference_audio|sample|video|voice)(?:s|_file)?(?:\[\w*\])?$/i

/** A part whose value comes. */
interface Part {
  readonly name: string
  readonly isModel: boolean
  readonly isJson: boolean
  /** The size that its head says. */
  readonly length: number | undefined
  /** The value so far, as latin1; undefined once it is known that nothing of it is checked. */
  value: string | undefined
  /** Whether the whole value is checked, though it may become long. */
  mayBeJson: boolean
  bytes: number
}

/**
 * Reads a form while it passes by, and checks the fields that it names. It takes only what every parser reads alike, and refuses
 * all else: other line ends, text before the first part or behind the last one, a boundary within a value, a head with other
 * lines than a form needs, an encoding. It keeps nothing but short values.
 */
export class StrictForm {
  readonly #boundary: string
  readonly #rules: FieldRules
  /** The end of what came, which may be the beginning of a boundary or of a head. A copy: pieces are freed once they are sent. */
  #rest: Buffer = Buffer.from(LINE_END)
  /** The part of the form that comes next. */
  #next: 'boundary' | 'boundary end' | 'head' | 'nothing' = 'boundary'
  /** The part whose value comes; undefined before the first one. */
  #part: Part | undefined

  constructor(boundary: string, rules: FieldRules) {
    this.#boundary = `${LINE_END}--${boundary}`
    this.#rules = rules
  }

  /** @throws {GatewayError} if the form must not pass. */
  read(piece: Buffer): void {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece
    for (let taken = this.#take(data); taken !== undefined; taken = this.#take(data))
      data = data.subarray(taken)
    this.#rest = Buffer.from(data)
  }

  /** @throws {GatewayError} if the form has not come whole. */
  end(): void {
    if (this.#next !== 'nothing' || (this.#rest.length > 0 && !this.#rest.equals(Buffer.from(LINE_END))))
      throw unreadable('It does not end with its last boundary.')
  }

  /** Takes what stands at the beginning. Returns its size; undefined if more must come. */
  #take(data: Buffer): number | undefined {
    switch (this.#next) {
      case 'boundary':
        return this.#takeValue(data)
      case 'boundary end':
        return this.#takeBoundaryEnd(data)
      case 'head':
        return this.#takeHead(data)
      case 'nothing':
        if (!LINE_END.startsWith(data.toString('latin1')))
          throw unreadable('Something follows its last boundary.')
        return undefined
    }
  }

  #takeValue(data: Buffer): number | undefined {
    const delimiter = this.#boundary
    const mark = delimiter.slice(LINE_END.length)
    const found = data.indexOf(mark, 0, 'latin1')
    const part = this.#part
    if (found < 0) {
      // A line end belongs to the boundary that may follow.
      const passed = data.length - delimiter.length
      if (!part && data.length >= delimiter.length) throw unreadable('It does not begin with its boundary.')
      if (passed <= 0) return undefined
      if (part) this.#addTo(part, data.subarray(0, passed))
      return passed
    }
    if (found < LINE_END.length || data.toString('latin1', found - LINE_END.length, found) !== LINE_END)
      throw unreadable('Its boundary does not stand at the beginning of a line that ends in CR LF.')
    const value = data.subarray(0, found - LINE_END.length)
    if (part) this.#endPart(part, value)
    else if (value.length > 0) throw unreadable('It does not begin with its boundary.')
    this.#part = undefined
    this.#next = 'boundary end'
    return found + mark.length
  }

  #takeBoundaryEnd(data: Buffer): number | undefined {
    if (data.length < 2) return undefined
    const end = data.toString('latin1', 0, 2)
    if (end !== LINE_END && end !== '--') throw unreadable('Its boundary stands within a line.')
    this.#next = end === '--' ? 'nothing' : 'head'
    return 2
  }

  #takeHead(data: Buffer): number | undefined {
    const found = data.indexOf(HEAD_END, 0, 'latin1')
    if (found > MAX_HEAD_BYTES || (found < 0 && data.length > MAX_HEAD_BYTES + HEAD_END.length))
      throw unreadable('The head of a part is too long.')
    if (found < 0) return undefined
    this.#part = this.#partOf(data.toString('latin1', 0, found))
    this.#next = 'boundary'
    return found + HEAD_END.length
  }

  #partOf(head: string): Part {
    const lines = new Map<string, string>()
    for (const line of head.split(LINE_END)) {
      const [, name, value] = HEAD_LINE.exec(line) ?? []
      if (name === undefined || value === undefined || lines.has(name.toLowerCase()))
        throw unreadable('The head of a part has a line that cannot be read, or occurs twice.')
      lines.set(name.toLowerCase(), value)
    }
    const { name, isFile } = readDisposition(lines.get('content-disposition'))
    checkName(name, this.#rules)
    const type = readPartType(lines.get('content-type'))
    const encoding = lines.get('content-transfer-encoding') ?? 'binary'
    if (!/^(?:binary|8bit|7bit)[ \t]*$/i.test(encoding)) throw unreadable('A part is encoded.')
    const length = readLength(lines.get('content-length'))
    for (const other of lines.keys())
      if (!PART_HEADERS.has(other))
        throw unreadable(`The head of a part has a line "${other.slice(0, 100)}".`)
    const isModel = this.#rules.checkModel !== undefined && isModelField(name)
    const isContent = isFile && FILE_FIELD.test(name) && !isModel
    const isJson = (!isFile && /json/i.test(type)) || isSession(name, this.#rules)
    return {
      name,
      isModel,
      isJson,
      length,
      value: isContent ? undefined : '',
      mayBeJson: isJson,
      bytes: 0,
    }
  }

  #addTo(part: Part, bytes: Buffer): void {
    part.bytes += bytes.length
    if (part.value === undefined) return
    part.value += bytes.toString('latin1')
    const { length } = part.value
    const begin = part.mayBeJson ? '' : part.value.trimStart()
    if (length >= BEGIN_BYTES_WITH_SPACES || begin.length >= BEGIN_BYTES)
      part.mayBeJson ||= mayBeJson(part.value) || begin === ''
    if (part.mayBeJson) {
      if (length > MAX_JSON_BYTES) throw unreadable('A field that begins as JSON is too long.')
    } else if (part.isModel) {
      if (length > MAX_MODEL_BYTES) throw unreadable('A model has too long a name.')
    } else if (begin.length >= BEGIN_BYTES) part.value = undefined
  }

  #endPart(part: Part, bytes: Buffer): void {
    this.#addTo(part, bytes)
    if (part.length !== undefined && part.length !== part.bytes)
      throw unreadable('A part is not as long as its Content-Length says.')
    if (part.value !== undefined)
      checkValue(part.name, Buffer.from(part.value, 'latin1'), this.#rules, part.isJson)
  }
}

const PART_HEADERS: ReadonlySet<string> = new Set([
  'content-disposition',
  'content-length',
  'content-transfer-encoding',
  'content-type',
])

const DISPOSITION_PARAMETERS: ReadonlySet<string> = new Set(['name', 'filename', 'filename*'])

function readDisposition(value = ''): { readonly name: string; readonly isFile: boolean } {
  const [, text] = DISPOSITION.exec(value) ?? []
  // A backslash before a quote escapes it for some, and not for others.
  if (text === undefined || text.includes('\\"')) throw unreadable(DISPOSITIONS)
  const given = new Map<string, string>()
  for (const [, name = '', quoted, plain] of text.matchAll(PARAMETER)) {
    if (given.has(name.toLowerCase())) throw unreadable(DISPOSITIONS)
    given.set(name.toLowerCase(), quoted ?? plain ?? '')
  }
  const name = given.get('name')
  const fileName = given.get('filename')
  const encoded = given.get('filename*')
  const isKnown = [...given.keys()].every((name) => DISPOSITION_PARAMETERS.has(name))
  if (name === undefined || !isKnown || NAME_WITHIN.test(fileName ?? '')) throw unreadable(DISPOSITIONS)
  if (encoded !== undefined && !ENCODED_FILE_NAME.test(encoded)) throw unreadable(DISPOSITIONS)
  return { name, isFile: (fileName ?? encoded) !== undefined }
}

function readPartType(value: string | undefined): string {
  if (value === undefined) return ''
  const [, type, parameters = ''] = PART_TYPE.exec(value) ?? []
  if (type === undefined || /^multipart\//i.test(type) || OTHER_CHARSET.test(parameters))
    throw unreadable('A part has a Content-Type that cannot be read.')
  return type
}

function readLength(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,15}$/.test(value)) throw unreadable('A part has a Content-Length that cannot be read.')
  return Number(value)
}

const DISPOSITIONS =
  'The head of a part must have the line: Content-Disposition: form-data; name="…", with a filename="…" for a file.'

function unreadable(why: string): GatewayError {
  return new GatewayError('invalid_request', { message: `The form cannot be read. ${why}` })
}

/** The rules for the fields of a form. */
export interface FieldRules {
  /** Checks the models that they name. */
  readonly checkModel?: ModelCheck | undefined
  /** Whether they may not name what an upstream keeps. */
  readonly ownedOnly: boolean
}

/** The field with which a call of Realtime begins. It names no stored session: it must be an object, the new one's settings. */
const SESSION = 'session'

/** Whether a field must hold the settings of a session. */
function isSession(name: string, { ownedOnly }: FieldRules): boolean {
  return ownedOnly && name === SESSION
}

const MAX_NAME_LENGTH = 200
/** A name that all upstreams read alike: `a`, `a[b]`, `a[]`. */
const NAME = /^[\w.$:@-]+(?:\[[\w.$:@-]*\])*$/
/** The beginning of a text that a parser of JSON may take, in any encoding, read as UTF-8 or as latin1. */
const JSON_BEGINS =
  /^(?:[\s\0\ufeff]|ï»¿|ÿþ|þÿ)*(?:\{[\s\0]*(?:["}/]|$)|\[[\s\0]*(?:[{["\]/\d-]|null|true|false|NaN|Infinity|$))/
/** In a text without one, JSON could name nothing. */
const MEMBER = /\{[\s\0]*["/]/

/** Whether all upstreams read a name alike. */
export function isPlainName(name: string): boolean {
  return name.length <= MAX_NAME_LENGTH && NAME.test(name)
}

/**
 * Checks the name of a field.
 *
 * @throws {GatewayError} `invalid_request` for a name that upstreams could read in different ways; `unsupported_feature` for
 * one that names what an upstream keeps.
 */
export function checkName(name: string, { ownedOnly }: FieldRules): void {
  // Upstreams that know it read the other fields in the charset that it names.
  if (!isPlainName(name) || name.toLowerCase() === '_charset_') throw unreadableName(name)
  if (ownedOnly && name !== SESSION && kindOfField(name) !== undefined) throw notInForms(name)
}

/** Whether the value of a field may be JSON, by its beginning. */
function mayBeJson(begin: string): boolean {
  return JSON_BEGINS.test(begin)
}

/**
 * Checks the value of a field whose name was checked: as the name of a model, and as JSON where it may be JSON.
 *
 * @throws {GatewayError} `model_not_allowed`; `unsupported_feature` or `invalid_request` for JSON that names what an upstream
 * keeps, or cannot be read.
 */
export function checkValue(name: string, value: Buffer, rules: FieldRules, isJson = false): void {
  const { checkModel, ownedOnly } = rules
  const text = value.toString()
  if (checkModel && isModelField(name)) checkModel(text)
  const holdsSession = isSession(name, rules)
  if (!isJson && !holdsSession && !(mayBeJson(text) && MEMBER.test(text))) return
  const member = partsOfField(name).at(-1) ?? name
  let json: unknown
  try {
    json = parseUnambiguous(value)
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new GatewayError('invalid_request', {
      param: name,
      message:
        'A field of the form must be JSON, or begins as JSON, and cannot be read. Send valid JSON, or the request as JSON.',
    })
  }
  if (holdsSession && !isJsonObject(json)) throw notInForms(name)
  if (checkModel) checkModels({ [member]: json }, checkModel)
  if (ownedOnly && namesResource(member, json)) throw notInForms(name)
}

/** Whether the value of a field names something by its name, or by itself: fields such as `text` are no reference in JSON. */
function namesResource(member: string, json: unknown): boolean {
  if (isData(member, json, {})) return false
  const bodies = [{ [member]: json }, isJsonObject(json) ? json : { items: json }]
  return bodies.some((body) => referencesIn(body).length > 0)
}

/** The refusal of a field that names something an upstream keeps. */
function notInForms(name: string): GatewayError {
  return new GatewayError('unsupported_feature', {
    param: name,
    message: 'A form cannot name a stored object. Send the request as JSON.',
  })
}

function unreadableName(name: string): GatewayError {
  return new GatewayError('invalid_request', {
    param: name,
    message:
      'A field of the form has a name that cannot be read. Send letters, digits and "_", as in "a" or "a[b]".',
  })
}
