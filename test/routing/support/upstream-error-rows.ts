export const PROMPT = 'Tell me how the grey heron of Lake Mjøsa hunts eels at 5 in the morning'
export interface Row {
  readonly who: string
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: unknown
  readonly told: readonly [
    type: string | null,
    code: string | null,
    param: string | null,
    message: string | null,
  ]
}

/** An error of each kind of provider. */
export const ROWS: readonly Row[] = [
  {
    who: 'OpenAI',
    body: {
      error: {
        message:
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        type: 'invalid_request_error',
        param: 'max_tokens',
        code: 'unsupported_parameter',
      },
    },
    told: [
      'invalid_request_error',
      'unsupported_parameter',
      'max_tokens',
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead",
    ],
  },
  {
    who: 'OpenAI, quoting the prompt',
    body: {
      error: {
        message: `Invalid 'messages[0].content': "${PROMPT}" is too long, 48213 tokens were given.`,
        type: 'invalid_request_error',
        param: 'messages[0].content',
        code: null,
      },
    },
    told: [
      'invalid_request_error',
      null,
      'messages[0].content',
      "Invalid 'messages[0].content … is too long, 48213 tokens were given",
    ],
  },
  {
    who: 'Azure',
    body: {
      error: {
        message: 'The response was filtered due to the prompt triggering content management policy.',
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
      },
    },
    told: [
      '400',
      'content_filter',
      'prompt',
      'The response was filtered due to the prompt triggering content management policy',
    ],
  },
  {
    who: 'Anthropic',
    body: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'messages.0.content.1: unexpected `tool_use_id` found',
      },
      request_id: 'req_1',
    },
    told: ['invalid_request_error', null, null, 'messages.0.content.1: unexpected `tool_use_id` found'],
  },
  {
    who: 'Gemini',
    body: [
      {
        error: {
          code: 400,
          message: 'Invalid value at generation_config.stop_sequences',
          status: 'INVALID_ARGUMENT',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.BadRequest',
              fieldViolations: [{ field: 'generation_config.stop_sequences', description: 'x' }],
            },
          ],
        },
      },
    ],
    told: [
      'INVALID_ARGUMENT',
      '400',
      'generation_config.stop_sequences',
      'Invalid value at generation_config.stop_sequences',
    ],
  },
  {
    who: 'Mistral',
    status: 422,
    body: {
      object: 'error',
      message: {
        detail: [
          {
            type: 'extra_forbidden',
            loc: ['body', 'seed'],
            msg: 'Extra inputs are not permitted',
            input: PROMPT,
          },
        ],
      },
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
    told: ['invalid_request_error', null, 'seed', 'Extra inputs are not permitted'],
  },
  {
    who: 'Mistral, with a detail of its own',
    status: 401,
    body: { detail: 'Unauthorized' },
    told: [null, null, null, 'Unauthorized'],
  },
  {
    who: 'Cohere',
    body: { id: 'x', message: 'invalid request: top_n must be positive' },
    told: [null, null, null, 'invalid request: top_n must be positive'],
  },
  {
    who: 'FastAPI',
    status: 422,
    body: {
      detail: [
        {
          type: 'missing',
          loc: ['body', 'messages', 0, 'role'],
          msg: 'Field required',
          input: { content: PROMPT },
        },
      ],
    },
    told: ['missing', null, 'messages.0.role', 'Field required'],
  },
  {
    who: 'vLLM',
    body: {
      object: 'error',
      message: "This model's maximum context length is 8192 tokens.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    told: ['BadRequestError', '400', null, "This model's maximum context length is 8192 tokens"],
  },
  {
    who: 'Bedrock',
    body: { __type: 'com.amazon.coral.validate#ValidationException', message: 'Malformed input request' },
    told: ['ValidationException', null, null, 'Malformed input request'],
  },
  {
    who: 'Bedrock, by its header',
    headers: { 'x-amzn-errortype': 'ValidationException:http://internal.amazon.com/' },
    body: { Message: 'Malformed input request' },
    told: ['ValidationException', null, null, 'Malformed input request'],
  },
  {
    who: 'Ollama',
    body: { error: 'invalid options: num_ctx' },
    told: [null, null, null, 'invalid options: num_ctx'],
  },
  {
    who: 'a hosted router',
    body: {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: {
          raw: JSON.stringify({ error: { message: 'tools are not supported', param: 'tools' } }),
          provider_name: 'x',
        },
      },
    },
    told: [null, '400', 'tools', 'Provider returned error: tools are not supported'],
  },
  {
    who: 'a text generation server',
    status: 422,
    body: { error: 'Input validation error', error_type: 'validation' },
    told: ['validation', null, null, 'Input validation error'],
  },
  {
    who: 'xAI',
    body: { code: 'Client specified an invalid argument', error: 'Model does not support parameter stop' },
    told: [null, 'Client specified an invalid argument', null, 'Model does not support parameter stop'],
  },
  {
    who: 'Cloudflare',
    body: { success: false, errors: [{ code: 5006, message: 'must have a prompt' }] },
    told: [null, '5006', null, 'must have a prompt'],
  },
  {
    who: 'one with a detail that is an object',
    body: { detail: { status: 'bad_voice', message: 'voice does not exist' } },
    told: ['bad_voice', null, null, 'voice does not exist'],
  },
  {
    who: 'Ark',
    body: {
      error: {
        code: 'InvalidParameter',
        message: 'The parameter `seed` is not valid',
        param: 'seed',
        type: 'BadRequest',
      },
    },
    told: ['BadRequest', 'InvalidParameter', 'seed', 'The parameter `seed` is not valid'],
  },
]
